package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	rating = mustPattern("rating", "json")
	start  = time.UnixMilli(stamp)
)

// eachWay runs a test with every way of renaming that the system has.
func eachWay(t *testing.T, test func(t *testing.T)) {
	t.Run("rename", test)
	if runtime.GOOS == "linux" {
		t.Run("link", func(t *testing.T) {
			setNoRenameat2(t)
			test(t)
		})
	}
}

func publish(t *testing.T, f *Folder, p Pattern, text string) string {
	t.Helper()
	path, err := f.Publish(t.Context(), p, start, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Fatalf("%s holds %q, %v; want %q", path, got, err, text)
	}
	return filepath.Base(path)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestPublish(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		for _, tt := range []struct {
			name    string
			pattern Pattern
			there   []string
			want    []string
		}{
			{"empty folder", rating, nil, []string{"rating_0.json", "rating_1.json", "rating_2.json"}},
			{"after the highest", rating, []string{"rating_2.json", "rating_9.json", "rating_10.json"}, []string{"rating_11.json", "rating_12.json"}},
			{"gaps stay", rating, []string{"rating_0.json", "rating_5.json"}, []string{"rating_6.json"}},
			{"only whole names count", rating, []string{"ratings_7.json", "rating_8.json~", "rating_9.txt", "xrating_9.json", "rating_.json", "rating.json"}, []string{"rating_0.json"}},
			{"no leading zeros, nothing over uint64", rating, []string{"rating_07.json", "rating_18446744073709551616.json"}, []string{"rating_0.json"}},
			{"the number comes from all its places", mustPattern("{turn}-of-{turn}", "md"), []string{"4-of-4.md", "7-of-8.md"}, []string{"5-of-5.md"}},
			{"a timestamp of its own", Default, nil, []string{"out-1712345678000.txt", "out-1712345678001.txt"}},
			{"the next free millisecond", Default, []string{"out-1712345678000.txt", "out-1712345678001.txt", "out-1712345678003.txt"}, []string{"out-1712345678002.txt", "out-1712345678004.txt"}},
			{"both", mustPattern("{timestamp}_{turn}", "txt"), []string{"1_6.txt"}, []string{"1712345678000_7.txt", "1712345678000_8.txt"}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				dir := t.TempDir()
				put(t, dir, tt.there...)
				f := Open(dir)
				var got []string
				for i := range tt.want {
					got = append(got, publish(t, f, tt.pattern, fmt.Sprint("answer ", i)))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				all := append(slices.Clone(tt.there), tt.want...)
				slices.Sort(all)
				if diff := cmp.Diff(all, names(t, dir)); diff != "" {
					t.Errorf("folder (-want +got):\n%s", diff)
				}
				for _, name := range tt.there {
					if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "old" {
						t.Errorf("%s was touched: %q, %v", name, b, err)
					}
				}
			})
		}
	})
}

// A deletion never leads to an overwrite, whether or not the folder is cached.
func TestDeletion(t *testing.T) {
	for _, cached := range []bool{true, false} {
		dir := t.TempDir()
		f := Open(dir)
		for range 3 {
			publish(t, f, rating, "x")
		}
		remove(t, dir, "rating_0.json")
		if !cached {
			f = Open(dir)
		}
		if got := publish(t, f, rating, "y"); got != "rating_3.json" {
			t.Errorf("cached %v: %s", cached, got)
		}
		remove(t, dir, "rating_3.json")
		if got := publish(t, f, rating, "z"); got != "rating_3.json" {
			t.Errorf("cached %v, highest deleted: %s", cached, got)
		}
	}
}

// The folder is listed once, and again only after somebody else changed it.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "rating_4.json")
	f := Open(dir)
	step := func(want string, scans int) {
		t.Helper()
		if got := publish(t, f, rating, "x"); got != want || f.scans != scans {
			t.Errorf("%s after %d listings; want %s after %d", got, f.scans, want, scans)
		}
	}
	step("rating_5.json", 1)
	step("rating_6.json", 1)
	step("rating_7.json", 1)
	put(t, dir, "rating_100.json")
	coarseClock(t, f)
	step("rating_101.json", 2)
	step("rating_102.json", 2)
	if err := os.Rename(filepath.Join(dir, "rating_102.json"), filepath.Join(dir, "rating_200.json")); err != nil {
		t.Fatal(err)
	}
	coarseClock(t, f)
	step("rating_201.json", 3)
	if err := os.WriteFile(filepath.Join(dir, "rating_201.json"), []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	step("rating_202.json", 3) // no name has changed
	pending, err := f.Prepare(t.Context(), "t1", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pending.Discard(); err != nil {
		t.Fatal(err)
	}
	step("rating_203.json", 3) // neither by a publish given up
	if got := publish(t, f, mustPattern("verdict", "json"), "x"); got != "verdict_0.json" || f.scans != 4 {
		t.Errorf("%s after %d listings", got, f.scans)
	}
	step("rating_204.json", 4) // two patterns are remembered
}

// Folders have no number, however high.
func TestFoldersDoNotCount(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "rating_3.json", "rating_2.json")
	for _, name := range []string{"rating_9.json", "rating_4.json", "verdict_1.json"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := Open(dir)
	if got := publish(t, f, rating, "x"); got != "rating_5.json" { // 4 is taken, 9 does not count
		t.Error(got)
	}
	if got := publish(t, f, mustPattern("verdict", "json"), "x"); got != "verdict_0.json" {
		t.Error(got)
	}
}

// coarseClock makes sure that the folder's change is seen even where the file
// system's clock ticks slowly.
func coarseClock(t *testing.T, f *Folder) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := openDir(f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if f.known(d) {
		t.Log("the change fell into the same tick of the clock")
		f.seen = nil
	}
}

// A cache that is wrong costs a second try, never a file.
func TestWrongCache(t *testing.T) {
	dir := t.TempDir()
	f := Open(dir)
	publish(t, f, rating, "x")
	pending, err := f.Prepare(t.Context(), "t", []byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	name, err := pending.NextName(rating, start)
	if err != nil || name != "rating_1.json" {
		t.Fatal(name, err)
	}
	put(t, dir, "rating_1.json", "rating_2.json")
	if path, err := pending.Commit(name); !errors.Is(err, fs.ErrExist) || path != "" {
		t.Fatalf("Commit onto a file: %q, %v", path, err)
	}
	name, err = pending.NextName(rating, start)
	if err != nil || name != "rating_3.json" {
		t.Fatal(name, err)
	}
	if _, err := pending.Commit(name); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "rating_1.json")); string(b) != "old" {
		t.Errorf("rating_1.json was replaced: %q", b)
	}
	if _, err := pending.Commit("rating_9.json"); err == nil {
		t.Error("a second Commit succeeds")
	}
	if err := pending.Discard(); err != nil {
		t.Error(err)
	}
}

// Whatever has a name keeps it: a folder, a link that leads nowhere, a link to
// a file.
func TestNothingIsReplaced(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "rating_0.json"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"rating_1.json": "gone", "out-1712345678000.txt": "gone"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Skip("no links here:", err)
			}
		}
		f := Open(dir)
		if got := publish(t, f, rating, "x"); got != "rating_2.json" {
			t.Error(got)
		}
		if got := publish(t, f, Default, "x"); got != "out-1712345678001.txt" {
			t.Error(got)
		}
		pending, err := f.Prepare(t.Context(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer pending.Discard()
		for _, name := range []string{"rating_0.json", "rating_1.json", "rating_2.json"} {
			if _, err := pending.Commit(name); !errors.Is(err, fs.ErrExist) {
				t.Errorf("Commit(%s) = %v", name, err)
			}
		}
		for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden", pending.temp} {
			if path, err := pending.Commit(name); err == nil || errors.Is(err, fs.ErrExist) {
				t.Errorf("Commit(%q) = %q, %v", name, path, err)
			}
		}
	})
}

func TestTwoInOneMillisecond(t *testing.T) {
	dir := t.TempDir()
	f := Open(dir)
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			for range 10 {
				if _, err := f.Publish(context.Background(), Default, start, []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	got := names(t, dir)
	if len(got) != 100 || got[0] != "out-1712345678000.txt" || got[99] != "out-1712345678099.txt" {
		t.Errorf("%d files: %v", len(got), got)
	}
}

func TestNumbersEnd(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, fmt.Sprintf("rating_%d.json", uint64(math.MaxUint64)))
	path, err := Publish(t.Context(), dir, rating, start, []byte("x"))
	if path != "" || err == nil || !strings.Contains(err.Error(), "rename the file") {
		t.Errorf("%q, %v", path, err)
	}
	long := mustPattern(strings.Repeat("{turn}", 30)+strings.Repeat("a", 250), "json")
	if path, err := Publish(t.Context(), dir, long, start, nil); path != "" || err == nil || !strings.Contains(err.Error(), "shorten the format") {
		t.Errorf("%q, %v", path, err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

func TestFolderIsMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "output")
	if got := publish(t, Open(dir), rating, "x"); got != "rating_0.json" {
		t.Error(got)
	}
	// The agent's own folder is not brought back.
	gone := filepath.Join(t.TempDir(), "agent", "output")
	_, err := Publish(t.Context(), gone, rating, start, nil)
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "make the folder again") {
		t.Errorf("publish into nowhere: %v", err)
	}
	file := filepath.Join(t.TempDir(), "output")
	put(t, filepath.Dir(file), "output")
	if _, err := Publish(t.Context(), file, rating, start, nil); !errors.As(err, &e) {
		t.Errorf("publish into a file: %v", err)
	}
}

// A folder swapped for another after the answer was prepared gets nothing.
func TestFolderSwapped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open folder cannot be renamed here")
	}
	parent := t.TempDir()
	dir, other := filepath.Join(parent, "output"), filepath.Join(parent, "other")
	for _, d := range []string{dir, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := Open(dir)
	pending, err := f.Prepare(t.Context(), "t", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Commit("rating_0.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder gone: %v", err)
	}
	if err := os.Symlink(other, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Commit("rating_0.json"); !errors.Is(err, ErrMoved) {
		t.Errorf("folder swapped: %v", err)
	}
	if err := pending.Discard(); err != nil {
		t.Error(err)
	}
	if got := append(names(t, dir+".old"), names(t, other)...); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	// The next publish follows the link, and the cache does not mix them up.
	if got := publish(t, f, rating, "y"); got != "rating_0.json" {
		t.Error(got)
	}
	if got := names(t, other); !slices.Equal(got, []string{"rating_0.json"}) {
		t.Error(got)
	}
}

func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if path, err := Publish(ctx, dir, rating, start, nil); !errors.Is(err, context.Canceled) || path != "" {
		t.Errorf("%q, %v", path, err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestPrepareIDs(t *testing.T) {
	dir := t.TempDir()
	f := Open(dir)
	for _, id := range []string{"a/b", `a\b`, "a\nb", strings.Repeat("x", 250)} {
		if _, err := f.Prepare(t.Context(), id, nil); err == nil {
			t.Errorf("id %.20q is taken", id)
		}
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	first, err := f.Prepare(t.Context(), "turn1", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if first.Temp() != filepath.Join(dir, TempName("turn1")) || !IsTemp(filepath.Base(first.Temp())) {
		t.Error(first.Temp())
	}
	if runtime.GOOS != "windows" {
		if _, err := f.Prepare(t.Context(), "turn1", nil); !errors.Is(err, errInUse) {
			t.Errorf("the same id twice: %v", err)
		}
	}
	if err := first.Discard(); err != nil {
		t.Fatal(err)
	}
	put(t, dir, TempName("turn1")) // what a dead process leaves
	again, err := f.Prepare(t.Context(), "turn1", []byte("2"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := again.Commit("rating_0.json")
	if b, _ := os.ReadFile(path); err != nil || string(b) != "2" {
		t.Errorf("%s holds %q, %v", path, b, err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, TempName("dead1"), TempName("dead2"), "rating_0.json", ".agentgraph-.tmp", ".agentgraph", "x.tmp")
	if err := os.Mkdir(filepath.Join(dir, TempName("folder")), 0o755); err != nil {
		t.Fatal(err)
	}
	alive, err := Open(dir).Prepare(t.Context(), "alive", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Sweep(dir)
	want := []string{TempName("dead1"), TempName("dead2")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := alive.Commit("rating_1.json"); err != nil {
		t.Errorf("a publish was swept: %v", err)
	}
	if got, err := Sweep(dir); err != nil || got != nil {
		t.Errorf("second sweep: %v, %v", got, err)
	}
	want = []string{".agentgraph", ".agentgraph-.tmp", TempName("folder"), "rating_0.json", "rating_1.json", "x.tmp"}
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	if got, err := Sweep(filepath.Join(dir, "gone")); err != nil || got != nil {
		t.Errorf("missing folder: %v, %v", got, err)
	}
}

// Sweeping while others publish takes nothing from them.
func TestSweepWhilePublishing(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var sweeps, work sync.WaitGroup
	sweeps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := Sweep(dir); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 4 {
		work.Go(func() {
			f := Open(dir)
			for range 50 {
				if _, err := f.Publish(context.Background(), rating, start, []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	close(stop)
	sweeps.Wait()
	if got := names(t, dir); len(got) != 200 {
		t.Errorf("%d files", len(got))
	}
}
