"""Starts deluged with settings of libtorrent that no key of core.conf sets, and
with the control API of a member of a swarm (system/internal/member/serve.go) in the
place of Deluge's own RPC.

    python launch.py SETTINGS.json [option of deluged …]

The settings are in force when the session is made: libtorrent's own defaults
would for a moment listen at every address, and look for peers everywhere.
"""
import base64
import errno
import glob
import hashlib
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
import time

from twisted.internet import defer, reactor, task, threads
from twisted.web import resource, server, static

import deluge.core.daemon
from deluge._libtorrent import lt
from deluge.core.core import Core
from deluge.core.daemon_entry import start_daemon

with open(sys.argv.pop(1)) as f:
    config = json.load(f)

# How often a torrent that lacks pieces is given again the peers that it is not
# connected to, in the place of a tracker; and how long a publication may take to be
# served, both in seconds.
REMIND, PATIENCE = 5, 30

make_session = lt.session
start_core = Core.start
rpc_server = deluge.core.daemon.RPCServer
contents = {}  # by info hash
forgotten = set()  # directories


def session(pack, flags=0):
    return make_session({**pack, **config['settings']}, flags)


def start(core):
    start_core(core)
    core.session.apply_settings(config['settings'])  # core.conf has overwritten some
    core.alertmanager.register_handler('cache_flushed', lambda alert: on_flushed(core, alert))
    site = server.Site(Control(core), requestFactory=Request, timeout=None)
    site.log = lambda request: None
    reactor.listenTCP(config['port'], site, interface=config['host'])
    task.LoopingCall(remind).start(REMIND)


class Request(server.Request):
    def gotLength(self, length):
        """A content is received where it is to be."""
        if length:
            self.content = tempfile.NamedTemporaryFile(dir=config['data'], prefix='.publish-')
        else:
            super().gotLength(length)


class Control(resource.Resource):
    isLeaf = True

    def __init__(self, core):
        super().__init__()
        self.core = core

    def render(self, request):
        if request.getHeader('authorization') != 'Bearer ' + config['token']:
            request.setResponseCode(401)
            return b''
        what, _, ref = request.path.decode().strip('/').partition('/')
        method = methods.get((request.method.decode(), what))
        if method is None:
            request.setResponseCode(405)
            return b''
        left = []
        request.notifyFinish().addErrback(left.append)
        answer = defer.maybeDeferred(method, self.core, request, *([ref] if ref else []))
        answer.addCallback(lambda value: value if value == server.NOT_DONE_YET else json.dumps(value).encode())
        answer.addErrback(refuse, request)
        answer.addCallback(lambda body: left or finish(request, body))
        return server.NOT_DONE_YET


def refuse(failure, request):
    request.setResponseCode(404 if failure.check(KeyError, FileNotFoundError) else 500)
    return f'{failure.type.__name__}: {failure.value}'.encode()


def finish(request, body):
    if body != server.NOT_DONE_YET:
        request.write(body)
        request.finish()


class Content:
    """A torrent of one file that this node has or fetches. Its directory is no other's,
    ever: libtorrent removes the files of a forgotten torrent in its own time. What an
    earlier process left of it is hashed before it is used."""

    def __init__(self, core, info, file=None):
        self.ref, self.size = hashlib.sha1(info).hexdigest(), lt.bdecode(info)[b'length']
        self.peers = []
        left = set(glob.glob(os.path.join(config['data'], self.ref + '-*'))) - forgotten
        self.dir = max(left, default=os.path.join(config['data'], f'{self.ref}-{time.time_ns()}'))
        self.path = os.path.join(self.dir, lt.bdecode(info)[b'name'].decode())
        os.makedirs(self.dir, exist_ok=True)
        if file:
            os.link(file, self.path)
        torrent = base64.b64encode(b'd4:info' + info + b'e')
        options = {'download_location': self.dir, 'seed_mode': bool(file)}
        if core.add_torrent_file(self.ref + '.torrent', torrent, options) != self.ref:
            raise ValueError('the daemon has another name for ' + self.ref)
        self.torrent = core.torrentmanager[self.ref]
        contents[self.ref] = self

    def forget(self, core):
        del contents[self.ref]
        forgotten.add(self.dir)
        core.remove_torrent(self.ref, True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def introduce(self):
        """Names to the torrent those of the peers that it is not connected to."""
        connected = {p.ip[0] for p in self.torrent.handle.get_peer_info()}
        for ip, _, port in (a.rpartition(':') for a in self.peers):
            if ip.strip('[]') not in connected:
                self.torrent.handle.connect_peer((ip.strip('[]'), int(port)), 0)

    def checking(self):
        return str(self.torrent.handle.status().state) in (
            'checking_files', 'checking_resume_data', 'queued_for_checking')

    def progress(self):
        """How far it is, by libtorrent's own account, never a cached one."""
        t = self.torrent
        s = t.handle.status()
        # Bytes of the pieces that passed their hash; total_done would count blocks
        # that nobody has checked.
        have = sum(t.handle.file_progress(lt.file_progress_flags_t.piece_granularity))
        done = is_written(t, s.is_seeding) and not self.checking() and have == self.size
        stuck = t.state in ('Error', 'Paused', 'Queued')
        return {
            'size': self.size, 'verified': have, 'written': self.size if done else -1, 'complete': done,
            'received': s.total_payload_download, 'sent': s.total_payload_upload, 'peers': s.num_peers,
            'trouble': f'{t.state}: {t.statusmsg}' if stuck else '',
        }


def remind():
    for c in contents.values():
        try:
            if not c.progress()['complete']:
                c.introduce()
        except RuntimeError:
            pass  # who asks how far it is sees it


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


def health(core, request):
    """Whether it takes peers at its port: when it could not have that it goes on without.

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
    if tied:
        raise RuntimeError(f'{tied} of its sockets were tied to a device')
    if core.session.listen_port() != config['peers']:
        raise RuntimeError(f'it listens for peers at port {core.session.listen_port()}, not {config["peers"]}')


def hashes(content, size):
    """Those of a file's pieces (BEP 3)."""
    content.seek(0)
    return b''.join(hashlib.sha1(content.read(config['piece'])).digest() for _ in range(0, size, config['piece']))


@defer.inlineCallbacks
def publish(core, request):
    """Makes a torrent (BEP 3) that is the same for the same bytes, name and piece size, on
    every node, and private (BEP 27), so that no client looks for peers beyond those that are
    named to it. libtorrent takes our word for its hashes (seed_mode)."""
    size = int(request.getHeader('content-length'))
    pieces = yield threads.deferToThread(hashes, request.content, size)
    info = lt.bencode({
        b'length': size, b'name': request.args[b'title'][0], b'piece length': config['piece'], b'pieces': pieces,
        b'private': 1})
    c = contents.get(hashlib.sha1(info).hexdigest())
    while c and c.checking():  # what an earlier process left
        yield task.deferLater(reactor, 0.1, lambda: None)
    if c and c.progress()['verified'] < size:
        c.forget(core)
        c = None
    c = c or Content(core, info, request.content.name)
    end = time.monotonic() + PATIENCE
    while not c.progress()['complete']:
        if time.monotonic() > end:
            raise RuntimeError('it does not serve: ' + c.torrent.state)
        yield task.deferLater(reactor, 0.01, lambda: None)
    return {'Ref': c.ref, 'Metadata': base64.b64encode(info).decode()}


def fetch(core, request, ref):
    job = json.load(request.content)
    c = contents.get(ref) or Content(core, base64.b64decode(job['Metadata']))
    c.peers += [a for a in job['From'] or [] if a not in c.peers]
    c.introduce()


def read_back(core, request, ref):
    os.stat(contents[ref].path)
    return static.File(contents[ref].path).render_GET(request)


methods = {
    ('GET', 'health'): health, ('PUT', 'publish'): publish, ('POST', 'fetch'): fetch,
    ('GET', 'fetch'): lambda core, request, ref: contents[ref].progress(),
    ('DELETE', 'fetch'): lambda core, request, ref: contents[ref].forget(core),
    ('GET', 'file'): read_back,
}
lt.session = session
Core.start = start
deluge.core.daemon.RPCServer = lambda **options: rpc_server(**{**options, 'listen': False})
sys.argv[0] = 'deluged'
sys.exit(start_daemon())
