package siad

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// First blocks of dev builds, as the builds report them.
const (
	genesis159  = "6581df2b1dae4ab8755cc2092ee438555ee1c705ecc34743d853c5d625c522c4" // 6de02ee40
	genesisLast = "2f4ada24f031824d750c594cfb72427211b98671db581b83cb4f2113d71c79bd" // 66e7fc630
)

// fakeEnv makes the test binary a process that looks like siad: a complete one ("chain"), or one
// that exits before it answers ("refuses") or when a wallet is to be created ("dies").
const fakeEnv = "PLIMSOLL_TEST_FAKE_SIAD"

// fakeBinary returns a program that is a fake siad of a kind and reports this version.
func fakeBinary(t *testing.T, kind, version string) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	path := filepath.Join(t.TempDir(), "siad")
	// The script sets the variable, because a process on a host has an environment of its own.
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != version ] || exec echo '%s'\n%s=%s exec '%s' \"$@\"\n",
		version, fakeEnv, kind, self)
	must(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

// fakeChain simulates a siad with a chain. It checks the rules that the adapter has to keep. Its
// database is a file of blocks, and its peers send each other this file. The difficulty of the
// first ten blocks is that of dev builds; after that, there is none.
type fakeChain struct {
	path  string
	alone bool

	mu    sync.Mutex
	tip   types.BlockID
	all   []types.Block
	peers map[string]net.Conn
	asked int
}

func serveFake(kind string, args []string) {
	value := func(flag string) string { return args[slices.Index(args, flag)+1] }
	die := func(why ...any) {
		fmt.Println(why...)
		os.Exit(4)
	}
	check := func(err error) {
		if err != nil {
			die(err)
		}
	}
	alone := slices.Contains(args, "--no-bootstrap")
	if os.Getenv("SIA_API_PASSWORD") == "" || !slices.Contains(args, "--upnp=false") || !alone && kind != "chain" {
		die("it has no password, or would look for a router or the public network")
	}
	if kind == "refuses" {
		die("cannot open the wallet:", value("-d"), value("-M"))
	}
	c := &fakeChain{path: filepath.Join(value("-d"), "consensus", chaincache.Database), alone: alone,
		peers: map[string]net.Conn{}}
	check(c.tip.UnmarshalText([]byte(genesisLast)))
	check(os.MkdirAll(filepath.Dir(c.path), 0o755))
	b, err := os.ReadFile(c.path)
	if !os.IsNotExist(err) {
		check(err)
	}
	if err := c.add(b); err != nil {
		die("panic: the database is invalid:", err)
	}
	l, err := net.Listen("tcp", value("--rpc-addr"))
	check(err)
	go c.serve(l)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /consensus", c.consensus)
	mux.HandleFunc("GET /gateway", c.gateway)
	mux.HandleFunc("POST /gateway/connect/{peer}", c.connect)
	mux.HandleFunc("POST /wallet/init", func(http.ResponseWriter, *http.Request) {
		die("panic: consensus.db: no space left on device")
	})
	if strings.Contains(value("-M"), "m") {
		mux.HandleFunc("POST /miner/block", func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err == nil {
				err = c.add(b)
			}
			if err == nil {
				err = fmt.Errorf("wallet must be unlocked before it can be used") // like siad, although it has accepted the block
			}
			refuse(w, err)
		})
	}
	die(http.ListenAndServe(value("--api-addr"), mux))
}

func refuse(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"message":%q}`, err)
}

// target returns the target of the next block.
func (c *fakeChain) target() types.Hash256 {
	if len(c.all) < 10 {
		return types.Hash256{0, 0, 2}
	}
	return types.Hash256(bytes.Repeat([]byte{255}, 32))
}

// add adds blocks one by one and stores them.
func (c *fakeChain) add(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := bytes.NewReader(b)
	for d := types.NewDecoder(io.LimitedReader{R: rest, N: int64(len(b))}); rest.Len() > 0; {
		var one types.Block
		if (*types.V1Block)(&one).DecodeFrom(d); d.Err() != nil {
			return d.Err()
		}
		id, target, height := one.ID(), c.target(), uint32(len(c.all)+1)
		switch {
		case one.ParentID != c.tip:
			return fmt.Errorf("block %d does not follow the one before", height)
		case bytes.Compare(target[:], id[:]) < 0:
			return fmt.Errorf("block %d is not solved", height)
		case one.Nonce%nonceUnit != 0:
			return fmt.Errorf("block %d has nonce %d", height, one.Nonce)
		case len(one.MinerPayouts) != 1 || !one.MinerPayouts[0].Value.Equals(types.Siacoins(300000-height)):
			return fmt.Errorf("block %d pays %v", height, one.MinerPayouts)
		case one.Timestamp.After(time.Now()):
			return fmt.Errorf("block %d is of %v", height, one.Timestamp)
		}
		c.all, c.tip = append(c.all, one), id
	}
	// Atomically, like a transaction: the process may be killed meanwhile.
	if err := os.WriteFile(c.path+".new", c.encoded(), 0o600); err != nil {
		return err
	}
	return os.Rename(c.path+".new", c.path)
}

func (c *fakeChain) encoded() []byte {
	var buf bytes.Buffer
	e := types.NewEncoder(&buf)
	for _, b := range c.all {
		types.V1Block(b).EncodeTo(e)
	}
	_ = e.Flush()
	return buf.Bytes()
}

func (c *fakeChain) consensus(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked++; c.asked < 3 { // modules are loaded later than the API
		w.WriteHeader(490)
		return
	}
	target := c.target()
	fmt.Fprintf(w, `{"synced":%v,"height":%d,"currentblock":"%s","target":%s,"genesistimestamp":1424139000,"initialcoinbase":300000,"minimumcoinbase":30000}`,
		c.alone, len(c.all), c.tip, strings.ReplaceAll(fmt.Sprint(target[:]), " ", ","))
}

func (c *fakeChain) gateway(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(w, `{"netaddress":"127.0.0.1:1","peers":[%s]}`, strings.TrimSuffix(strings.Repeat("{},", len(c.peers)),
		","))
}

// serve sends all blocks to each peer that connects. During its initial download, a siad sends
// none.
func (c *fakeChain) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		b := c.encoded()
		c.mu.Unlock()
		if c.alone {
			_, _ = conn.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b...))
		}
	}
}

// blocksOf connects to a peer and reads its blocks.
func blocksOf(peer string) (conn net.Conn, b []byte, err error) {
	if conn, err = net.Dial("tcp", peer); err != nil {
		return nil, nil, err
	}
	var size uint64
	if err = binary.Read(conn, binary.LittleEndian, &size); err == nil {
		b = make([]byte, size)
		_, err = io.ReadFull(conn, b)
	}
	return conn, b, err
}

// connect adds the peer's blocks and keeps the connection.
func (c *fakeChain) connect(w http.ResponseWriter, r *http.Request) {
	peer := r.PathValue("peer")
	conn, b, err := blocksOf(peer)
	if err != nil {
		refuse(w, err)
		return
	}
	c.mu.Lock()
	c.peers[peer] = conn
	have := len(c.encoded())
	c.mu.Unlock()
	if err := c.add(b[min(have, len(b)):]); err != nil {
		fmt.Println("a peer's blocks:", err)
	}
	w.WriteHeader(http.StatusNoContent)
	go func() {
		_, _ = io.Copy(io.Discard, conn) // until the peer dies
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.peers, peer)
	}()
}
