package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"agentgraph/record"
)

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, _, err := Open(path, Options{Problem: func(err error) {
		if err != nil {
			t.Errorf("problem: %v", err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func wait(t *testing.T, x Ticket) {
	t.Helper()
	if err := x.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func turnNamed(seq int64, id string) Turn {
	return Turn{
		Seq: seq, ID: id, Agent: "a", Key: "key " + id, State: Claimed, Created: time.Unix(1e9, 5), Trace: id,
		Inputs:  []record.FileRef{{Path: "in/" + id, SHA256: "s", Bytes: 3}},
		Lineage: record.Lineage{Roots: []record.FileRef{{Path: "r", SHA256: "t", Bytes: 1}}, Hops: 2},
	}
}

func TestTurnsThroughTheirStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	l := open(t, path)
	x := turnNamed(7, "x")
	l.Claim(x, [][]byte{[]byte("abc"), nil}, []File{{"a", "in", "x", -5}})
	wait(t, l.Intend("x", 2, Intend{}.of("boot", "1:2", "rating", "json", "{}")))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	l = open(t, path) // everything was on disk
	got, ok, err := l.ByKey("a", "key x")
	want := x
	want.State, want.Attempts = Publishing, 2
	if diff := cmp.Diff(want, got); err != nil || !ok || diff != "" {
		t.Errorf("%v %v (-want +got):\n%s", ok, err, diff)
	}
	if in, ok, err := l.Intent("x"); err != nil || !ok || cmp.Diff(Intend{}.of("boot", "1:2", "rating", "json", "{}"), in) != "" {
		t.Errorf("intent %+v, %v, %v", in, ok, err)
	}
	if s, err := l.Snapshots("x"); err != nil || cmp.Diff(map[int][]byte{0: []byte("abc")}, s) != "" {
		t.Errorf("snapshots %v, %v", s, err)
	}
	if f, err := l.Files("a", "in"); err != nil || cmp.Diff(map[string]int64{"x": -5}, f) != "" {
		t.Errorf("files %v, %v", f, err)
	}
	if open, err := l.OpenOf("a"); err != nil || len(open) != 1 {
		t.Errorf("open %v, %v", open, err)
	}

	got.State, got.Output, got.OutputSHA = Done, "a/output/rating_0.json", "u"
	wait(t, l.Set(got))
	if by, ok, err := l.ByOutput("a/output/rating_0.json"); err != nil || !ok || cmp.Diff(got, by) != "" {
		t.Errorf("by output %+v, %v, %v", by, ok, err)
	}
	if _, ok, _ := l.Intent("x"); ok {
		t.Error("the intent of a turn that is done is kept")
	}
	if s, _ := l.Snapshots("x"); len(s) > 0 {
		t.Error("the snapshot of a turn that is done is kept")
	}
	for i := range 5 {
		y := turnNamed(int64(10+i), fmt.Sprint("y", i))
		y.State = Done
		l.Claim(y, nil, nil)
	}
	z := turnNamed(20, "z")
	z.State, z.Fingerprint = Refused, "f"
	l.Claim(z, nil, nil)
	wait(t, l.enqueue(true, func(*sqlite.Conn) error { return nil }))
	if last, err := l.LastDone("a", 2, 14); err != nil || len(last) != 2 || last[0].ID != "y2" || last[1].ID != "y3" {
		t.Errorf("last done: %v, %v", last, err)
	}
	if c, err := l.Counts(""); err != nil || cmp.Diff(map[string]map[State]int{"a": {Done: 6, Refused: 1}}, c) != "" {
		t.Errorf("counts %v, %v", c, err)
	}
	if over, err := l.Over(Refused, ""); err != nil || len(over) != 1 || over[0].Fingerprint != "f" {
		t.Errorf("refused %v, %v", over, err)
	}
	if n, err := l.MaxSeq(); err != nil || n != 20 {
		t.Errorf("highest %d, %v", n, err)
	}
}

// Intend is a helper for literals.
type Intend struct{}

func (Intend) of(boot, inode, format, ext, rec string) Intent {
	return Intent{Boot: boot, Inode: inode, Format: format, Ext: ext, Record: []byte(rec)}
}

// Writes of many goroutines share transactions and keep their order.
func TestGroupCommit(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "l.db"))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 50 {
				x := turnNamed(0, fmt.Sprintf("%d-%d", g, i))
				l.Claim(x, nil, nil)
				x.State = Done
				if err := l.Set(x).Wait(context.Background()); err != nil {
					t.Error(err)
				}
				if got, ok, err := l.ByID(x.ID); err != nil || !ok || got.State != Done {
					t.Errorf("after the wait: %+v, %v, %v", got, ok, err)
				}
			}
		}()
	}
	wg.Wait()
}

// A write that cannot be holds up nobody, and after is called in any case.
func TestOneBadWrite(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "l.db"))
	x := turnNamed(1, "x")
	wait(t, l.Claim(x, nil, nil))
	hold := make(chan struct{})
	l.enqueue(false, func(*sqlite.Conn) error { <-hold; return nil }) // the next three share a transaction
	called := make(chan struct{})
	bad := l.Claim(x, nil, nil)
	good := l.Claim(turnNamed(2, "y"), nil, nil)
	set := l.SetThen(Turn{ID: "y", State: Done}, func() { close(called) })
	close(hold)
	if err := bad.Wait(t.Context()); sqlite.ErrCode(err).ToPrimary() != sqlite.ResultConstraint {
		t.Errorf("the second claim of one turn: %v", err)
	}
	wait(t, good)
	wait(t, set)
	select {
	case <-called:
	default:
		t.Error("after was not called before Wait returned")
	}
	l.Close()
	if err := l.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A ledger of version 1 is taken over with what is under way.
func TestVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	l := open(t, path)
	x := turnNamed(7, "x")
	wait(t, l.Claim(x, [][]byte{[]byte("abc")}, nil))
	wait(t, l.enqueue(true, func(c *sqlite.Conn) error {
		return sqlitex.ExecuteScript(c, "ALTER TABLE turns DROP COLUMN sample; ALTER TABLE turns DROP COLUMN samples;", nil)
	}))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA user_version=1", nil); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for range 2 {
		l, created, err := Open(path, Options{})
		if err != nil || created {
			t.Fatalf("created %v, %v", created, err)
		}
		got, _, err := l.ByID("x")
		if diff := cmp.Diff(x, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		l.Close()
	}
}

// The answers to one input are found by the identity of the first.
func TestSampleKeys(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "l.db"))
	var turns []Turn
	for i := range 12 {
		x := turnNamed(int64(i+1), fmt.Sprint("x", i))
		x.Key, x.Sample, x.Samples = SampleKey("k", i), i, 12
		turns = append(turns, x)
	}
	other := turnNamed(20, "other")
	other.Key = "l"
	wait(t, l.ClaimAll(turns, [][]byte{[]byte("abc")}, nil))
	wait(t, l.Claim(other, nil, nil))
	got, err := l.BySamples("a", "k")
	if diff := cmp.Diff(turns, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := l.BySamples("b", "k"); err != nil || len(got) > 0 {
		t.Errorf("another agent's: %v, %v", got, err)
	}
}
