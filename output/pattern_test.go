package output

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"testing/quick"
	"time"
)

const stamp = 1712345678000

func TestPatternNames(t *testing.T) {
	for _, tt := range []struct{ format, ext, want string }{
		{"rating", "json", "rating_7.json"},
		{"a.b", "md", "a.b_7.md"},
		{"{turn}", "json", "7.json"},
		{"{turn}-{turn}", "json", "7-7.json"},
		{"out-{timestamp}", "txt", "out-1712345678000.txt"},
		{"{timestamp}_{turn}_{timestamp}", "txt", "1712345678000_7_1712345678000.txt"},
	} {
		p, err := NewPattern(tt.format, tt.ext)
		if err != nil {
			t.Error(err)
			continue
		}
		got := p.Name(7, time.UnixMilli(stamp))
		if got != tt.want {
			t.Errorf("%s: %s, want %s", p, got, tt.want)
		}
		if !p.Match(got) {
			t.Errorf("%s does not match %s", p, got)
		}
	}
	if got := Default.Name(7, time.UnixMilli(stamp)); got != "out-1712345678000.txt" {
		t.Errorf("default: %s", got)
	}
	if got := Default.Name(0, time.Unix(-5, 0)); got != "out-0.txt" {
		t.Errorf("before the epoch: %s", got)
	}
}

func TestTurn(t *testing.T) {
	const none = -1
	for _, tt := range []struct {
		format, name string
		turn         int
	}{
		{"rating", "rating_0.json", 0},
		{"rating", "rating_12.json", 12},
		{"rating", "ratings_7.json", none},
		{"rating", "rating_7.json.bak", none},
		{"rating", "xrating_7.json", none},
		{"rating", "rating_07.json", none},
		{"rating", "rating_00.json", none},
		{"rating", "rating_.json", none},
		{"rating", "rating_-1.json", none},
		{"rating", "rating_+1.json", none},
		{"rating", "rating_1_2.json", none},
		{"rating", "rating_1.txt", none},
		{"rating", "rating_٣.json", none},
		{"rating", "rating_18446744073709551616.json", none},
		{"rating", "rating_184467440737095516150.json", none},
		{"rating", "rating.json", none},
		{"rating", ".rating_1.json", none},
		{"rating", "", none},
		{"{turn}", "5.json", 5},
		{"{turn}", ".json", none},
		{"v1{turn}", "v15.json", 5},
		{"v1{turn}", "v1.json", none},
		{"{turn}{turn}", "1212.json", 12},
		{"{turn}{turn}", "11.json", 1},
		{"{turn}{turn}", "12.json", none},
		{"{turn}{turn}", "111.json", none},
		{"{turn}0{turn}", "101.json", 1},
		{"{turn}0{turn}", "10101.json", none},
		{"{turn}-{timestamp}", "3-1712345678000.json", 3},
		{"{turn}-{timestamp}", "3-5.json", 3},
		{"{turn}-{timestamp}", "3-05.json", none},
		{"{turn}{timestamp}", "31712345678000.json", 3},
		{"{turn}{timestamp}", "01712345678000.json", 0},
		{"{turn}{timestamp}", "101712345678000.json", 10},
		{"{timestamp}{turn}", "17123456780009.json", 9},
		{"{timestamp}-{timestamp}", "5-5.json", none},
		{"[a-z]+", "[a-z]+_4.json", 4},
		{"[a-z]+", "abc_4.json", none},
	} {
		p := mustPattern(tt.format, "json")
		n, ok := p.Turn(tt.name)
		if got := int(n); ok && got != tt.turn || !ok && tt.turn != none {
			t.Errorf("%s: turn of %q is %d, %v; want %d", p, tt.name, n, ok, tt.turn)
		}
	}
	if n, ok := mustPattern("r", "json").Turn("r_18446744073709551615.json"); !ok || n != math.MaxUint64 {
		t.Errorf("largest number: %d, %v", n, ok)
	}
	if !mustPattern("{timestamp}-{timestamp}", "json").Match("5-5.json") || Default.Match("out-01.txt") || Default.Match("out-9223372036854775808.txt") {
		t.Error("timestamps")
	}
	if (Pattern{}).Match("") {
		t.Error("the zero pattern matches")
	}
}

func TestRefusedPatterns(t *testing.T) {
	for _, format := range []string{"", ".x", "a/b", `a\b`, "a\nb", "{agent}", "{turn", "turn}", "{}", "{{turn}}", "a\xff"} {
		if p, err := NewPattern(format, "json"); err == nil {
			t.Errorf("NewPattern(%q) = %s", format, p)
		}
	}
	if _, err := NewPattern("a", ""); err == nil {
		t.Error("an empty extension is taken")
	}
}

// What Name prints, Turn and Timestamp read.
func TestNameTurn(t *testing.T) {
	parts := []string{"{turn}", "{timestamp}", "a", "0", "1", "-", "_", ".", "é"}
	check := func(seed int64, turn uint64, ms uint32) bool {
		r := rand.New(rand.NewSource(seed))
		format := "x"
		for range r.Intn(6) {
			format += parts[r.Intn(len(parts))]
		}
		p := mustPattern(format, "txt")
		started := time.UnixMilli(stamp + int64(ms))
		turn >>= r.Intn(64)
		name := p.Name(turn, started)
		if !p.Match(name) {
			t.Logf("%s does not match %s", p, name)
			return false
		}
		if got, ok := p.Turn(name); ok && got != turn || ok != p.Numbered() {
			t.Logf("%s: turn of %s is %d, want %d", p, name, got, turn)
			return false
		}
		got, ok := p.Timestamp(name)
		return !ok || got.Equal(started)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}

func FuzzTurn(f *testing.F) {
	f.Add("rating", "rating_7.json")
	f.Add("{turn}{timestamp}", "01712345678000.json")
	f.Add("{turn}0{turn}", "10101.json")
	f.Fuzz(func(t *testing.T, format, name string) {
		p, err := NewPattern(format, "json")
		if err != nil || !p.Match(name) {
			return
		}
		turn, _ := p.Turn(name)
		var ms int64
		if at, ok := p.Timestamp(name); ok {
			ms = at.UnixMilli()
		}
		if back := p.name(turn, ms); back != name {
			t.Errorf("%q matches %s and is printed as %q", name, p, back)
		}
	})
}

func TestPatternString(t *testing.T) {
	got := fmt.Sprint(mustPattern("rating", "json"), mustPattern("{turn}-{timestamp}", "md"), Default)
	if want := "rating_{turn}.json {turn}-{timestamp}.md out-{timestamp}.txt"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func BenchmarkTurn(b *testing.B) {
	p := mustPattern("rating", "json")
	for b.Loop() {
		if _, ok := p.Turn("rating_123456.json"); !ok {
			b.Fatal("no match")
		}
	}
}
