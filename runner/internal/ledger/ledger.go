package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Version of the tables; it is PRAGMA user_version.
const Version = 2

// applicationID marks the file as ours ("agrl").
const applicationID = 0x6167726c

// Why a ledger cannot be used.
var (
	ErrCorrupt = errors.New("the ledger is damaged")
	ErrOlder   = errors.New("the ledger was written by an older version")
	ErrNewer   = errors.New("the ledger was written by a newer version")
)

const schema = `
CREATE TABLE turns(
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  agent       TEXT NOT NULL,
  key         TEXT NOT NULL,
  state       INTEGER NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  next_at     INTEGER NOT NULL DEFAULT 0,
  created     INTEGER NOT NULL,
  inputs      TEXT NOT NULL,
  lineage     TEXT NOT NULL,
  trace       TEXT NOT NULL,
  fingerprint TEXT NOT NULL DEFAULT '',
  code        TEXT NOT NULL DEFAULT '',
  message     TEXT NOT NULL DEFAULT '',
  output      TEXT NOT NULL DEFAULT '',
  output_sha  TEXT NOT NULL DEFAULT '',
  forced      INTEGER NOT NULL DEFAULT 0,
  sample      INTEGER NOT NULL DEFAULT 0,
  samples     INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX turns_key ON turns(agent, key);
CREATE INDEX turns_output ON turns(output) WHERE output <> '';
CREATE INDEX turns_state ON turns(state, agent) WHERE state <> 4;
CREATE INDEX turns_done ON turns(agent, seq) WHERE state = 4;
CREATE TABLE intents(
  turn   TEXT PRIMARY KEY,
  boot   TEXT NOT NULL,
  inode  TEXT NOT NULL,
  format TEXT NOT NULL,
  ext    TEXT NOT NULL,
  record BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE snapshots(
  turn TEXT NOT NULL,
  n    INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY(turn, n)
) WITHOUT ROWID;
CREATE TABLE files(
  agent TEXT NOT NULL,
  dir   TEXT NOT NULL,
  name  TEXT NOT NULL,
  print INTEGER NOT NULL,
  PRIMARY KEY(agent, dir, name)
) WITHOUT ROWID;
CREATE TABLE paused(agent TEXT PRIMARY KEY) WITHOUT ROWID;
`

// fromVersion1 makes a ledger of version 1 one of this version.
const fromVersion1 = `
ALTER TABLE turns ADD COLUMN sample INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN samples INTEGER NOT NULL DEFAULT 1;
`

// Ledger is an open ledger. Its methods may be called from any goroutine.
type Ledger struct {
	path string

	readMu sync.Mutex
	read   *sqlite.Conn

	mu     sync.Mutex
	queue  []*op
	closed bool
	wake   chan struct{}
	done   chan struct{}
	write  *sqlite.Conn
	// problem is told when writes begin to fail (err) and work again (nil).
	problem func(error)
}

// Options of Open.
type Options struct {
	// Problem is called when writing begins to fail and, with nil, when it
	// works again.
	Problem func(error)
}

// Open opens the ledger at path, or makes it. created says that it is new and
// has to be filled.
func Open(path string, opt Options) (l *Ledger, created bool, err error) {
	_, serr := os.Stat(path)
	created = errors.Is(serr, fs.ErrNotExist)
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, false, classify(path, err)
	}
	fail := func(err error) (*Ledger, bool, error) {
		conn.Close()
		return nil, false, classify(path, err)
	}
	conn.SetBusyTimeout(5 * time.Second)
	version, app, err := versions(conn)
	switch {
	case err != nil:
		return fail(err)
	case version > Version && app == applicationID:
		return fail(fmt.Errorf("%w (%d, this program has %d)", ErrNewer, version, Version))
	case version != 0 && version < Version && !(version == 1 && app == applicationID):
		return fail(ErrOlder)
	case version == 0 && app != 0, version != 0 && app != applicationID:
		return fail(fmt.Errorf("%w: another program's database", ErrCorrupt))
	}
	for _, pragma := range []string{"journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=2000", "cache_size=-4000"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return fail(err)
		}
	}
	if version == 0 {
		// Also after a crash between the file's creation and its tables.
		created = true
		if err := setUp(conn, schema); err != nil {
			return fail(err)
		}
	} else if err := check(conn); err != nil {
		return fail(err)
	} else if version == 1 {
		if err := setUp(conn, fromVersion1); err != nil {
			return fail(err)
		}
	}
	read, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return fail(err)
	}
	read.SetBusyTimeout(5 * time.Second)
	l = &Ledger{path: path, read: read, write: conn, wake: make(chan struct{}, 1), done: make(chan struct{}), problem: opt.Problem}
	go l.writer()
	return l, created, nil
}

func versions(conn *sqlite.Conn) (version, app int64, err error) {
	one := func(pragma string) (n int64, err error) {
		err = sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			n = s.ColumnInt64(0)
			return nil
		}})
		return n, err
	}
	if version, err = one("user_version"); err != nil {
		return 0, 0, err
	}
	app, err = one("application_id")
	return version, app, err
}

func setUp(conn *sqlite.Conn, script string) (err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	return sqlitex.ExecuteScript(conn, script+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", applicationID, Version), nil)
}

// check finds damage before work begins. It reads every page, which is quick
// for the size a ledger has.
func check(conn *sqlite.Conn) error {
	var said string
	err := sqlitex.ExecuteTransient(conn, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		said = s.ColumnText(0)
		return nil
	}})
	if err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", ErrCorrupt, said)
	}
	return nil
}

func classify(path string, err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultFormat:
		if !errors.Is(err, ErrCorrupt) {
			err = fmt.Errorf("%w: %v", ErrCorrupt, err)
		}
	}
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrOlder) || errors.Is(err, ErrNewer) {
		return err
	}
	return fmt.Errorf("opening the ledger %s: %w", path, err)
}

// Close writes what is queued and closes the ledger.
func (l *Ledger) Close() error {
	if !l.end() {
		return nil
	}
	l.readMu.Lock()
	defer l.readMu.Unlock()
	return errors.Join(l.read.Close(), l.write.Close())
}

// abandoned ledgers are kept from the garbage collector.
var abandoned struct {
	sync.Mutex
	list []*Ledger
}

// Abandon ends a ledger whose files were taken away. Its connections stay
// open: SQLite would remove files by their names, which may be those of
// another ledger by now.
func (l *Ledger) Abandon() {
	if l.end() {
		abandoned.Lock()
		defer abandoned.Unlock()
		abandoned.list = append(abandoned.list, l)
	}
}

// end stops the writer after what is queued; it reports whether it was the
// first to do so.
func (l *Ledger) end() bool {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	l.poke()
	<-l.done
	return first
}

func (l *Ledger) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
