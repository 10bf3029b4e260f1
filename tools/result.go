package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"unicode/utf8"
)

// maxOutput ends a program or an answer that never stops.
const maxOutput = 64 << 20

// detailBytes bounds what a failure keeps of a program's stderr.
const detailBytes = 2 << 10

// Run calls the tool within its bounds. It does not look at the policy.
func (o *Offer) Run(ctx context.Context, c Call) Result {
	// So that a value that ends behind what the model reads is known for one.
	c.Keep = o.OutputBytes + longest(o.secrets)
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	out, err := o.call(limited, c)
	if err != nil && limited.Err() != nil {
		switch {
		case ctx.Err() != nil:
			err = errors.New("the turn ended while the tool ran")
		default:
			err = fmt.Errorf("it ran longer than %v and was stopped", o.Timeout)
		}
	}
	var r Result
	r.ExitStatus = out.ExitStatus
	if err == nil || out.Text != "" || out.SHA256 != "" {
		size, sha := out.Bytes, out.SHA256
		if sha == "" {
			size, sha = int64(len(out.Text)), hashOf(out.Text)
		}
		r.Bytes, r.SHA256 = &size, sha
		r.Text = o.bound(out.Text, size)
	}
	if err != nil {
		text := err.Error()
		r.Failed = o.clean(text, len(text) >= detailBytes-utf8.UTFMax)
		r.Text = o.bound("error: "+text, 0)
	}
	return r
}

// call keeps a tool's panic inside the tool.
func (o *Offer) call(ctx context.Context, c Call) (out Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = Output{}, fmt.Errorf("it broke off: %v", p)
		}
	}()
	return o.Tool.Call(ctx, c)
}

// bound makes text fit for a model and a record; whole is its size where only
// its beginning is here.
func (o *Offer) bound(text string, whole int64) string {
	text = o.clean(text, whole > int64(len(text)))
	total := max(whole, int64(len(text)))
	if len(text) <= o.OutputBytes && total <= int64(o.OutputBytes) {
		return text
	}
	cut := cutText(text, o.OutputBytes)
	return fmt.Sprintf("%s\n[cut after %d of %d bytes]", cut, len(cut), total)
}

// clean takes secrets and what no record can hold out of a text, which may be
// cut at its end.
func (o *Offer) clean(text string, cut bool) string {
	text = redact(o.secrets, text, false, cut)
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// collector keeps the beginning of what is written and hashes all of it.
type collector struct {
	keep  int
	kept  []byte
	size  int64
	sum   hash.Hash
	limit int64
	over  func() // called once, when limit is passed
}

func newCollector(keep int, limit int64, over func()) *collector {
	return &collector{keep: keep, sum: sha256.New(), limit: limit, over: over}
}

func (c *collector) Write(p []byte) (int, error) {
	if c.size+int64(len(p)) > c.limit {
		if c.over != nil {
			c.over()
			c.over = nil
		}
		return 0, errTooMuch
	}
	c.size += int64(len(p))
	c.sum.Write(p)
	if room := c.keep - len(c.kept); room > 0 {
		c.kept = append(c.kept, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (c *collector) hash() string { return hex.EncodeToString(c.sum.Sum(nil)) }

var errTooMuch = fmt.Errorf("it wrote more than %d MiB and was stopped", maxOutput>>20)
