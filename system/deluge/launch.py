"""Starts deluged with settings of libtorrent that no key of core.conf sets, and
with an HTTP API in the place of Deluge's own RPC.

    python launch.py SETTINGS.json [option of deluged …]

The settings are in force when the session is made: libtorrent's own defaults
would for a moment listen at every address, and look for peers everywhere.
"""
import errno
import json
import os
import socket
import stat
import sys

from twisted.internet import reactor
from twisted.web import resource, server

import deluge.core.daemon
from deluge._libtorrent import lt
from deluge.core.core import Core
from deluge.core.daemon_entry import start_daemon
from deluge.error import InvalidTorrentError

with open(sys.argv.pop(1)) as f:
    config = json.load(f)

make_session = lt.session
start_core = Core.start
rpc_server = deluge.core.daemon.RPCServer


def session(pack, flags=0):
    return make_session({**pack, **config['settings']}, flags)


def start(core):
    start_core(core)
    core.session.apply_settings(config['settings'])  # core.conf has overwritten some
    core.alertmanager.register_handler('cache_flushed', lambda alert: on_flushed(core, alert))
    site = server.Site(Control(core), timeout=None)
    site.log = lambda request: None
    reactor.listenTCP(config['port'], site, interface=config['host'])


class Control(resource.Resource):
    """POST /METHOD with a list of arguments, JSON as is the answer."""

    isLeaf = True

    def __init__(self, core):
        super().__init__()
        self.core = core

    def render(self, request):
        if request.getHeader('authorization') != 'Bearer ' + config['token']:
            request.setResponseCode(401)
            return b''
        method = methods.get(request.path.decode())
        if method is None:
            request.setResponseCode(405)
            return b''
        try:
            answer = method(self.core, *(json.load(request.content) or []))
        except InvalidTorrentError as e:
            request.setResponseCode(404)
            return str(e).encode()
        except Exception as e:
            request.setResponseCode(500)
            return f'{type(e).__name__}: {e}'.encode()
        return json.dumps(answer).encode()


def on_flushed(core, alert):
    torrent = core.torrentmanager.torrents.get(str(alert.handle.info_hash()))
    if torrent is not None:
        torrent.plimsoll_flushed = True


def is_written(torrent, seeding):
    """Whether all that a complete torrent has is in its file: libtorrent calls a
    piece its own when it has the hash right, before the bytes are written."""
    if not seeding:
        torrent.plimsoll_flushed = None
    elif getattr(torrent, 'plimsoll_flushed', None) is None:
        torrent.plimsoll_flushed = False
        torrent.handle.flush_cache()
    return bool(torrent.plimsoll_flushed)


def untie(fd):
    """Whether the socket was tied to a device; it is not any more."""
    s = socket.socket(fileno=fd)
    try:
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).strip(b'\0') in (b'', b'lo'):
            return False
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'')
        return True
    finally:
        s.detach()  # it is libtorrent's, or Deluge's: it stays open, and no copy is made


def health(core):
    """The port that it takes peers at, and how many sockets were not yet right.

    libtorrent ties what it listens with to the first device that has its address.
    A host with an emulated link has the same address on two, and its peers come
    in by the other one.
    """
    tied = 0
    for fd in map(int, os.listdir('/proc/self/fd')):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                tied += untie(fd)
        except OSError as e:
            if e.errno not in (errno.ENOTSOCK, errno.EBADF, errno.ENOPROTOOPT, errno.EOPNOTSUPP):
                raise
    return {'port': core.session.listen_port(), 'tied': tied}


def add(core, name, torrent, options):
    return core.add_torrent_file(name, torrent, options)


def remove(core, torrent_id):
    return core.remove_torrent(torrent_id, True)


def status(core, torrent_id):
    """How far a torrent is, by libtorrent's own account, never a cached one."""
    torrent = core.torrentmanager[torrent_id]
    s = torrent.handle.status()
    return {
        # Bytes of the pieces that passed their hash; total_done
        # would count blocks that nobody has checked.
        'have': sum(torrent.handle.file_progress(lt.file_progress_flags_t.piece_granularity)),
        'seeding': is_written(torrent, s.is_seeding),
        'checking': str(s.state) in ('checking_files', 'checking_resume_data', 'queued_for_checking'),
        'state': torrent.state,
        'message': torrent.statusmsg,
        'received': s.total_payload_download,
        'sent': s.total_payload_upload,
        'peers': s.num_peers,
    }


def connect(core, torrent_id, peers):
    """Names to a torrent those of the peers that it is not connected to."""
    handle = core.torrentmanager[torrent_id].handle
    connected = {p.ip[0] for p in handle.get_peer_info()}
    for ip, port in peers:
        if ip not in connected:
            handle.connect_peer((ip, port), 0)


methods = {'/' + f.__name__: f for f in (health, add, remove, status, connect)}
lt.session = session
Core.start = start
deluge.core.daemon.RPCServer = lambda **options: rpc_server(**{**options, 'listen': False})
sys.argv[0] = 'deluged'
sys.exit(start_daemon())
