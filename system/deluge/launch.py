"""Starts deluged with settings of libtorrent that no key of core.conf sets, and
with three more RPC methods.

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

from deluge._libtorrent import lt
from deluge.core.core import Core
from deluge.core.daemon_entry import start_daemon
from deluge.core.rpcserver import export

with open(sys.argv.pop(1)) as f:
    settings = json.load(f)

make_session = lt.session
start_core = Core.start


def session(pack, flags=0):
    return make_session({**pack, **settings}, flags)


def start(self):
    start_core(self)
    self.session.apply_settings(settings)  # core.conf has overwritten some
    self.alertmanager.register_handler('cache_flushed', lambda alert: on_flushed(self, alert))


def on_flushed(self, alert):
    torrent = self.torrentmanager.torrents.get(str(alert.handle.info_hash()))
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


@export
def plimsoll_listens(self):
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
    return self.session.listen_port(), tied


@export
def plimsoll_status(self, torrent_id):
    """How far a torrent is, by libtorrent's own account, never a cached one."""
    torrent = self.torrentmanager[torrent_id]
    s = torrent.handle.status()
    return {
        # Bytes of the pieces that passed their hash; total_done
        # would count blocks that nobody has checked.
        'have': sum(torrent.handle.file_progress(lt.file_progress_flags_t.piece_granularity)),
        'seeding': is_written(torrent, s.is_seeding),
        'lt_state': str(s.state),
        'state': torrent.state,
        'message': torrent.statusmsg,
        'received': s.total_payload_download,
        'sent': s.total_payload_upload,
        'peers': s.num_peers,
    }


@export
def plimsoll_connect(self, torrent_id, peers):
    """Tells a torrent of peers that it is not connected to; how many they are."""
    handle = self.torrentmanager[torrent_id].handle
    connected = {p.ip[0] for p in handle.get_peer_info()}
    told = [(ip, port) for ip, port in peers if ip not in connected]
    for peer in told:
        handle.connect_peer(peer, 0)
    return len(told)


lt.session = session
Core.start = start
Core.plimsoll_listens = plimsoll_listens
Core.plimsoll_status = plimsoll_status
Core.plimsoll_connect = plimsoll_connect
sys.argv[0] = 'deluged'
sys.exit(start_daemon())
