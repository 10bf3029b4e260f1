package ledger

import (
	"encoding/json"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"agentgraph/record"
)

// State of a turn.
type State int

// The states. Claimed, Waiting and Publishing are open: the runner still has
// work to do.
const (
	Claimed    State = 1 // its input is fixed; it has no answer
	Waiting    State = 2 // an attempt failed; another one is due at NextAt
	Publishing State = 3 // its answer is decided and may be a file already
	Done       State = 4
	Failed     State = 5
	Refused    State = 6
)

func (s State) String() string {
	return [...]string{"", "claimed", "waiting", "publishing", "done", "failed", "refused"}[s]
}

// Open reports whether the runner still has work to do.
func (s State) Open() bool { return s == Claimed || s == Waiting || s == Publishing }

// Turn is one row.
type Turn struct {
	Seq         int64 // order of the claims
	ID          string
	Agent       string
	Key         string // identity: agent, input paths, content hashes
	State       State
	Attempts    int
	NextAt      time.Time
	Created     time.Time
	Inputs      []record.FileRef
	Lineage     record.Lineage
	Trace       string
	Fingerprint string // of what a refused turn was refused on
	Code        string
	Message     string
	Output      string // relative to the graph
	OutputSHA   string
	Forced      bool
	// Sample of Samples answers to the same input, 0 for the first; Samples is
	// 0 or 1 where there is one.
	Sample, Samples int
}

// Intent is what a publish is about to do.
type Intent struct {
	Boot   string // the machine's boot, where known
	Inode  string // of the temporary file, where known
	Format string // of the schema file's name; empty: no schema file
	Ext    string
	Record []byte // the turn's record, without the output's name
}

// File is an input file as it looked when its content was last dealt with.
type File struct {
	Agent, Dir, Name string
	Print            int64
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("ledger: " + err.Error())
	}
	return string(b)
}

// Claim writes a new turn with the bytes of its inputs and the look of their
// files. A nil snapshot is kept elsewhere.
func (l *Ledger) Claim(t Turn, snapshots [][]byte, files []File) Ticket {
	return l.ClaimAll([]Turn{t}, snapshots, files)
}

// ClaimAll is Claim for several turns on the same inputs: all of them or none.
func (l *Ledger) ClaimAll(turns []Turn, snapshots [][]byte, files []File) Ticket {
	return l.enqueue(false, func(c *sqlite.Conn) error {
		for _, t := range turns {
			if err := insert(c, t); err != nil {
				return err
			}
			for n, data := range snapshots {
				if data == nil {
					continue
				}
				err := sqlitex.Execute(c, `INSERT INTO snapshots(turn, n, data) VALUES(?, ?, ?)`, &sqlitex.ExecOptions{Args: []any{t.ID, n, data}})
				if err != nil {
					return err
				}
			}
		}
		return putFiles(c, files)
	})
}

// Insert writes a turn that is over, while a ledger is rebuilt.
func (l *Ledger) Insert(turns []Turn) Ticket {
	return l.enqueue(true, func(c *sqlite.Conn) error {
		for _, t := range turns {
			if err := insert(c, t); err != nil {
				return err
			}
		}
		return nil
	})
}

func insert(c *sqlite.Conn, t Turn) error {
	var seq any
	if t.Seq != 0 {
		seq = t.Seq
	}
	return sqlitex.Execute(c, `INSERT INTO turns(seq, id, agent, key, state, attempts, next_at, created, inputs, lineage, trace, fingerprint, code, message, output, output_sha, forced, sample, samples)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, &sqlitex.ExecOptions{Args: []any{
		seq, t.ID, t.Agent, t.Key, int(t.State), t.Attempts, nanos(t.NextAt), nanos(t.Created), mustJSON(t.Inputs), mustJSON(t.Lineage),
		t.Trace, t.Fingerprint, t.Code, t.Message, t.Output, t.OutputSHA, t.Forced, t.Sample, max(t.Samples, 1),
	}})
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Seen notes the look of files whose content was dealt with before.
func (l *Ledger) Seen(files ...File) Ticket {
	return l.enqueue(false, func(c *sqlite.Conn) error { return putFiles(c, files) })
}

func putFiles(c *sqlite.Conn, files []File) error {
	for _, f := range files {
		err := sqlitex.Execute(c, `INSERT INTO files(agent, dir, name, print) VALUES(?,?,?,?)
			ON CONFLICT(agent, dir, name) DO UPDATE SET print = excluded.print`, &sqlitex.ExecOptions{Args: []any{f.Agent, f.Dir, f.Name, f.Print}})
		if err != nil {
			return err
		}
	}
	return nil
}

// Forget drops the look of files that are gone.
func (l *Ledger) Forget(agent, dir string, names []string) Ticket {
	return l.enqueue(false, func(c *sqlite.Conn) error {
		for _, n := range names {
			if err := sqlitex.Execute(c, `DELETE FROM files WHERE agent = ? AND dir = ? AND name = ?`, &sqlitex.ExecOptions{Args: []any{agent, dir, n}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Intend writes what a publish is about to do. Wait before doing it.
func (l *Ledger) Intend(turn string, attempts int, in Intent) Ticket {
	return l.enqueue(true, func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, `UPDATE turns SET state = ?, attempts = ? WHERE id = ?`, &sqlitex.ExecOptions{Args: []any{int(Publishing), attempts, turn}})
		if err != nil {
			return err
		}
		return sqlitex.Execute(c, `INSERT OR REPLACE INTO intents(turn, boot, inode, format, ext, record) VALUES(?,?,?,?,?,?)`,
			&sqlitex.ExecOptions{Args: []any{turn, in.Boot, in.Inode, in.Format, in.Ext, in.Record}})
	})
}

// Set moves a turn to a state. When it is over, what it held is dropped.
func (l *Ledger) Set(t Turn) Ticket { return l.SetThen(t, nil) }

// SetThen is Set, and calls after when that is on disk, before a Flush that
// came later returns.
func (l *Ledger) SetThen(t Turn, after func()) Ticket {
	return l.enqueueThen(false, func(c *sqlite.Conn) error {
		err := sqlitex.Execute(c, `UPDATE turns SET state=?, attempts=?, next_at=?, fingerprint=?, code=?, message=?, output=?, output_sha=? WHERE id=?`,
			&sqlitex.ExecOptions{Args: []any{int(t.State), t.Attempts, nanos(t.NextAt), t.Fingerprint, t.Code, t.Message, t.Output, t.OutputSHA, t.ID}})
		if err != nil {
			return err
		}
		if t.State != Publishing {
			if err := sqlitex.Execute(c, `DELETE FROM intents WHERE turn=?`, &sqlitex.ExecOptions{Args: []any{t.ID}}); err != nil {
				return err
			}
		}
		if t.State.Open() {
			return nil
		}
		return sqlitex.Execute(c, `DELETE FROM snapshots WHERE turn=?`, &sqlitex.ExecOptions{Args: []any{t.ID}})
	}, after)
}

// Pause keeps an agent paused over restarts.
func (l *Ledger) Pause(agent string, on bool) Ticket {
	return l.enqueue(true, func(c *sqlite.Conn) error {
		q := `DELETE FROM paused WHERE agent = ?`
		if on {
			q = `INSERT OR IGNORE INTO paused(agent) VALUES(?)`
		}
		return sqlitex.Execute(c, q, &sqlitex.ExecOptions{Args: []any{agent}})
	})
}

// Drop removes a turn that is open, as if its input had never been seen.
func (l *Ledger) Drop(id string) Ticket {
	return l.enqueue(false, func(c *sqlite.Conn) error {
		for _, q := range []string{`DELETE FROM turns WHERE id = ?`, `DELETE FROM intents WHERE turn = ?`, `DELETE FROM snapshots WHERE turn = ?`} {
			if err := sqlitex.Execute(c, q, &sqlitex.ExecOptions{Args: []any{id}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropFiles forgets the looks of all files of an agent.
func (l *Ledger) DropFiles(agent string) Ticket {
	return l.enqueue(false, func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, `DELETE FROM files WHERE agent = ?`, &sqlitex.ExecOptions{Args: []any{agent}})
	})
}
