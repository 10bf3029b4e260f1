package distill

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"agentgraph/model"
	"agentgraph/record"
)

// Share is one split of an export and how much of it comes there.
type Share struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
}

// maxShares bounds the splits: each is a file that is open.
const maxShares = 16

var shareName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)

// ParseSplit reads "train=0.9,test=0.1". Weights need not add up to 1.
func ParseSplit(text string) ([]Share, error) {
	var shares []Share
	for part := range strings.SplitSeq(text, ",") {
		name, weight, ok := strings.Cut(strings.TrimSpace(part), "=")
		w, err := strconv.ParseFloat(weight, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not NAME=WEIGHT; write it like train=0.9,test=0.1", part)
		}
		shares = append(shares, Share{name, w})
	}
	return shares, checkShares(shares)
}

func checkShares(shares []Share) error {
	seen := map[string]bool{}
	sum := 0.0
	for _, s := range shares {
		switch {
		case !shareName.MatchString(s.Name):
			return fmt.Errorf("%q cannot name a split: letters, digits and _ can, and it begins with a letter", s.Name)
		case seen[s.Name]:
			return fmt.Errorf("the split %q is named twice", s.Name)
		case !(s.Weight > 0) || math.IsInf(s.Weight, 0):
			return fmt.Errorf("the split %s has the weight %v; it takes a number above 0", s.Name, s.Weight)
		}
		seen[s.Name] = true
		sum += s.Weight
	}
	if len(shares) > maxShares {
		return fmt.Errorf("%d splits; at most %d are made", len(shares), maxShares)
	}
	if len(shares) == 0 || math.IsInf(sum, 0) {
		return errors.New("the weights of the splits have no sum")
	}
	return nil
}

// splitter puts rows into splits so that no input is in two of them. Inputs
// that meet in one conversation (several roots, earlier turns as history)
// belong together, so it is told of all rows first.
//
// It keeps about 40 bytes for each link between two inputs.
type splitter struct {
	shares []Share
	sum    float64
	seed   uint64
	parent map[uint64]uint64
}

func newSplitter(shares []Share, seed uint64) *splitter {
	s := &splitter{shares: shares, seed: seed, parent: map[uint64]uint64{}}
	for _, x := range shares {
		s.sum += x.Weight
	}
	return s
}

// link notes that these inputs go to the same split.
func (s *splitter) link(keys []uint64) {
	for _, k := range keys[min(1, len(keys)):] {
		a, b := s.find(keys[0]), s.find(k)
		// The least key stands for all, whatever the order of the links.
		if a < b {
			s.parent[b] = a
		} else if b < a {
			s.parent[a] = b
		}
	}
}

func (s *splitter) find(k uint64) uint64 {
	for {
		p, ok := s.parent[k]
		if !ok {
			return k
		}
		if pp, ok := s.parent[p]; ok {
			s.parent[k] = pp
		}
		k = p
	}
}

// split is the index of the share that an input belongs to.
func (s *splitter) split(key uint64) int {
	if len(s.shares) == 1 {
		return 0
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], s.seed)
	binary.BigEndian.PutUint64(b[8:], s.find(key))
	sum := sha256.Sum256(b[:])
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) * s.sum
	for i, x := range s.shares {
		if at -= x.Weight; at < 0 {
			return i
		}
	}
	return len(s.shares) - 1
}

// inputKeys are what a turn goes back to. A file that came from outside is
// known by its content, so that the same text under two names is one input; an
// answer of this graph by its path too, because short answers are often alike.
func inputKeys(rec *record.Record, isAnswer func(path string) bool) []uint64 {
	roots := rec.Inputs
	if rec.Lineage != nil && len(rec.Lineage.Roots) > 0 {
		roots = rec.Lineage.Roots
	}
	var keys []uint64
	for _, f := range roots {
		if isAnswer(f.Path) {
			keys = append(keys, fileKey(f))
		} else {
			keys = append(keys, hashKey("text", f.SHA256))
		}
	}
	if rec.Request != nil {
		for _, m := range earlierInputs(rec.Request.Messages) {
			sum := sha256.Sum256([]byte(m.Content))
			keys = append(keys, hashKey("text", fmt.Sprintf("%x", sum)))
		}
	}
	if len(keys) == 0 && rec.TurnID != nil {
		keys = append(keys, hashKey("turn", *rec.TurnID))
	}
	for _, f := range rec.Outputs {
		keys = append(keys, fileKey(f))
	}
	return keys
}

// earlierInputs are the user's messages before the last.
func earlierInputs(msgs []model.Message) []model.Message {
	var users []model.Message
	for _, m := range msgs {
		if m.Role == model.User {
			users = append(users, m)
		}
	}
	return users[:max(len(users)-1, 0)]
}

func fileKey(f record.FileRef) uint64 { return hashKey("file", f.Path, f.SHA256) }

func hashKey(parts ...string) uint64 {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
