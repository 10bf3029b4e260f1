package ledger

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const columns = `SELECT seq, id, agent, key, state, attempts, next_at, created, inputs, lineage, trace, fingerprint, code, message, output, output_sha, forced, sample, samples FROM turns `

func (l *Ledger) query(q string, args []any, each func(*sqlite.Stmt) error) error {
	l.readMu.Lock()
	defer l.readMu.Unlock()
	if err := sqlitex.Execute(l.read, q, &sqlitex.ExecOptions{Args: args, ResultFunc: each}); err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	return nil
}

func (l *Ledger) turns(where string, args ...any) ([]Turn, error) {
	var list []Turn
	err := l.query(columns+where, args, func(s *sqlite.Stmt) error {
		t := Turn{
			Seq: s.ColumnInt64(0), ID: s.ColumnText(1), Agent: s.ColumnText(2), Key: s.ColumnText(3),
			State: State(s.ColumnInt(4)), Attempts: s.ColumnInt(5), NextAt: moment(s.ColumnInt64(6)), Created: moment(s.ColumnInt64(7)),
			Trace: s.ColumnText(10), Fingerprint: s.ColumnText(11), Code: s.ColumnText(12), Message: s.ColumnText(13),
			Output: s.ColumnText(14), OutputSHA: s.ColumnText(15), Forced: s.ColumnBool(16),
			Sample: s.ColumnInt(17),
		}
		if n := s.ColumnInt(18); n > 1 {
			t.Samples = n
		}
		if err := json.Unmarshal([]byte(s.ColumnText(8)), &t.Inputs); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(s.ColumnText(9)), &t.Lineage); err != nil {
			return err
		}
		list = append(list, t)
		return nil
	})
	return list, err
}

func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func first(list []Turn, err error) (Turn, bool, error) {
	if err != nil || len(list) == 0 {
		return Turn{}, false, err
	}
	return list[0], true, nil
}

// ByKey is the newest turn with this identity.
func (l *Ledger) ByKey(agent, key string) (Turn, bool, error) {
	return first(l.turns(`WHERE agent = ? AND key = ? ORDER BY seq DESC LIMIT 1`, agent, key))
}

// SampleKey is the identity of one of several answers to the same input, whose
// first has the identity key.
func SampleKey(key string, sample int) string {
	if sample == 0 {
		return key
	}
	return key + "/" + strconv.Itoa(sample)
}

// BySamples are the turns with the identity key and its samples, oldest first.
func (l *Ledger) BySamples(agent, key string) ([]Turn, error) {
	// A key ends before a slash, and "0" follows the slash.
	return l.turns(`WHERE agent = ? AND key >= ? AND key < ? ORDER BY seq`, agent, key, key+"0")
}

// ByID is the turn with this id.
func (l *Ledger) ByID(id string) (Turn, bool, error) { return first(l.turns(`WHERE id = ?`, id)) }

// ByOutput is the newest turn whose answer has this path.
func (l *Ledger) ByOutput(path string) (Turn, bool, error) {
	return first(l.turns(`WHERE output = ? AND output <> '' ORDER BY seq DESC LIMIT 1`, path))
}

// Open lists the turns that are not over, in the order of their claims.
func (l *Ledger) Open() ([]Turn, error) {
	return l.turns(`WHERE state <> 4 AND state IN (1, 2, 3) ORDER BY seq`)
}

// OpenOf lists the turns of one agent that are not over, in the order of their
// claims.
func (l *Ledger) OpenOf(agent string) ([]Turn, error) {
	return l.turns(`WHERE state <> 4 AND state IN (1, 2, 3) AND agent = ? ORDER BY seq`, agent)
}

// Of lists all turns of one agent.
func (l *Ledger) Of(agent string) ([]Turn, error) {
	return l.turns(`WHERE agent = ? ORDER BY seq`, agent)
}

// All lists the turns of one agent, or with an empty name of all.
func (l *Ledger) All(agent string) ([]Turn, error) {
	if agent != "" {
		return l.Of(agent)
	}
	return l.turns(`ORDER BY seq`)
}

// Over lists the turns of an agent in a state that is an end but not Done;
// an empty agent means all.
func (l *Ledger) Over(state State, agent string) ([]Turn, error) {
	return l.turns(`WHERE state <> 4 AND state = ? AND (? = '' OR agent = ?) ORDER BY seq`, int(state), agent, agent)
}

// LastDone lists the newest n completed turns of an agent claimed before seq,
// oldest first; of several answers to one input, the first.
func (l *Ledger) LastDone(agent string, n int, seq int64) ([]Turn, error) {
	list, err := l.turns(`WHERE state = 4 AND agent = ? AND seq < ? AND sample = 0 ORDER BY seq DESC LIMIT ?`, agent, seq, n)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, err
}

// Counts is how many turns an agent has in each state; an empty name means
// every agent.
func (l *Ledger) Counts(agent string) (map[string]map[State]int, error) {
	counts := map[string]map[State]int{}
	err := l.query(`SELECT agent, state, count(*) FROM turns WHERE ? = '' OR agent = ? GROUP BY agent, state`, []any{agent, agent}, func(s *sqlite.Stmt) error {
		a := s.ColumnText(0)
		if counts[a] == nil {
			counts[a] = map[State]int{}
		}
		counts[a][State(s.ColumnInt(1))] = s.ColumnInt(2)
		return nil
	})
	return counts, err
}

// MaxSeq is the highest number of a claim.
func (l *Ledger) MaxSeq() (n int64, err error) {
	err = l.query(`SELECT coalesce(max(seq), 0) FROM turns`, nil, func(s *sqlite.Stmt) error {
		n = s.ColumnInt64(0)
		return nil
	})
	return n, err
}

// Intent of a turn that is publishing.
func (l *Ledger) Intent(turn string) (in Intent, ok bool, err error) {
	err = l.query(`SELECT boot, inode, format, ext, record FROM intents WHERE turn = ?`, []any{turn}, func(s *sqlite.Stmt) error {
		in = Intent{Boot: s.ColumnText(0), Inode: s.ColumnText(1), Format: s.ColumnText(2), Ext: s.ColumnText(3)}
		in.Record = make([]byte, s.ColumnLen(4))
		s.ColumnBytes(4, in.Record)
		ok = true
		return nil
	})
	return in, ok, err
}

// Snapshots are the bytes of a turn's inputs, by their number.
func (l *Ledger) Snapshots(turn string) (map[int][]byte, error) {
	snaps := map[int][]byte{}
	err := l.query(`SELECT n, data FROM snapshots WHERE turn = ?`, []any{turn}, func(s *sqlite.Stmt) error {
		data := make([]byte, s.ColumnLen(1))
		s.ColumnBytes(1, data)
		snaps[s.ColumnInt(0)] = data
		return nil
	})
	return snaps, err
}

// Files are the known looks of the files in one input folder.
func (l *Ledger) Files(agent, dir string) (map[string]int64, error) {
	files := map[string]int64{}
	err := l.query(`SELECT name, print FROM files WHERE agent = ? AND dir = ?`, []any{agent, dir}, func(s *sqlite.Stmt) error {
		files[s.ColumnText(0)] = s.ColumnInt64(1)
		return nil
	})
	return files, err
}

// InputPaths are the paths that an agent's turns had as inputs.
func (l *Ledger) InputPaths(agent string) (map[string]bool, error) {
	paths := map[string]bool{}
	err := l.query(`SELECT inputs FROM turns WHERE agent = ?`, []any{agent}, func(s *sqlite.Stmt) error {
		var inputs []struct {
			Path string `json:"path"`
		}
		if err := json.Unmarshal([]byte(s.ColumnText(0)), &inputs); err != nil {
			return err
		}
		for _, in := range inputs {
			paths[in.Path] = true
		}
		return nil
	})
	return paths, err
}

// Paused lists the agents that are paused.
func (l *Ledger) Paused() (map[string]bool, error) {
	paused := map[string]bool{}
	err := l.query(`SELECT agent FROM paused`, nil, func(s *sqlite.Stmt) error {
		paused[s.ColumnText(0)] = true
		return nil
	})
	return paused, err
}
