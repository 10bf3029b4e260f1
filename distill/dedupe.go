package distill

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Near-duplicates are found with MinHash and locality-sensitive hashing: one
// permutation with rotation (Shrivastava & Li 2014), so that each shingle is
// hashed once, and signatures of one byte a value. It is written here because
// it is a page of code, and because its hashes must never change with a
// library: the same rows have to fall out of every export of the same data.
//
// It keeps about 400 bytes for each row that stays.

const (
	signatureSize = 128
	shingleRunes  = 5
)

// maxCompared bounds the rows that a row is compared with: many that are half
// alike cannot make an export slow.
const maxCompared = 512

type signature [signatureSize]uint8

// sketch is what a text leaves: the full hashes choose the bands, the bytes
// estimate how alike two texts are.
type sketch struct {
	values [signatureSize]uint32
	bytes  signature
	exact  uint64 // the same for the same text alone
}

// sketchOf makes the sketch of a text: its runs of five characters, without
// regard to case and kind of space.
func sketchOf(text string) *sketch {
	var least [signatureSize]uint64
	for i := range least {
		least[i] = math.MaxUint64
	}
	add := func(shingle string) {
		h := stableHash(shingle)
		// The lower bits choose the place, so the upper ones decide there.
		if at := h % signatureSize; h < least[at] {
			least[at] = h
		}
	}
	norm := normal(text)
	starts := make([]int, 0, shingleRunes+1) // where the last five characters begin
	for i := range norm {
		if len(starts) == shingleRunes {
			add(norm[starts[0]:i])
			starts = append(starts[:0], starts[1:]...)
		}
		starts = append(starts, i)
	}
	if len(starts) > 0 {
		add(norm[starts[0]:])
	} else {
		add("")
	}
	s := &sketch{exact: stableHash(norm)}
	for i := range least {
		// An empty place takes the value of the next full one, with its
		// distance mixed in.
		d := 0
		for least[(i+d)%signatureSize] == math.MaxUint64 {
			d++
		}
		v := mix(least[(i+d)%signatureSize] + uint64(d)*0x9e3779b97f4a7c15)
		s.values[i], s.bytes[i] = uint32(v), uint8(v>>32)
	}
	return s
}

// normal is the text in lower case with single spaces.
func normal(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if r < utf8.RuneSelf {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b.WriteByte(byte(r))
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// stableHash is 64-bit FNV-1a with a final mix.
func stableHash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// similarity estimates the Jaccard similarity of the shingles of two texts.
func (a *signature) similarity(b *signature) float64 {
	const low = 0x7f7f7f7f7f7f7f7f
	same := signatureSize
	for i := 0; i < signatureSize; i += 8 {
		// The upper bit of each byte that differs.
		x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:])
		same -= bits.OnesCount64((x&low + low | x) &^ low)
	}
	const chance = 1.0 / 256
	return max(0, (float64(same)/signatureSize-chance)/(1-chance))
}

// deduper remembers the rows that were kept.
type deduper struct {
	threshold float64
	asked     int32 // rows so far
	rows      int   // values per band
	kept      []keptRow
	exact     map[uint64]bool  // texts that were kept
	first     map[uint64]int32 // the last row of a band's bucket, + 1
	next      []int32          // per row and band: the one before it, + 1
}

type keptRow struct {
	group uint64
	seen  int32 // the row it was last compared with
	signature
}

// newDeduper finds rows whose texts are at least this alike, from 0.5 to 1.
func newDeduper(threshold float64) *deduper {
	d := &deduper{threshold: threshold, exact: map[uint64]bool{}, first: map[uint64]int32{}}
	// As many values per band as still find 99 of 100 pairs at the threshold.
	for _, rows := range []int{16, 8, 4, 2} {
		d.rows = rows
		bands := float64(signatureSize / rows)
		if 1-math.Pow(1-math.Pow(threshold, float64(rows)), bands) >= 0.99 {
			break
		}
	}
	return d
}

// duplicate reports whether a row of the same group that is as alike was kept,
// and keeps this one when not. Only rows of one group are compared.
func (d *deduper) duplicate(group uint64, s *sketch) bool {
	exact := mix(group ^ s.exact)
	if d.exact[exact] {
		return true
	}
	d.asked++
	looked := 0
	bands := signatureSize / d.rows
	var keys [signatureSize]uint64
	for b := range bands {
		h := mix(group ^ uint64(b+1)*0x9e3779b97f4a7c15)
		for _, v := range s.values[b*d.rows : (b+1)*d.rows] {
			h = mix(bits.RotateLeft64(h, 13) ^ uint64(v))
		}
		keys[b] = h
	}
	for b := range bands {
		for at := d.first[keys[b]]; at != 0 && looked < maxCompared; at = d.next[int(at-1)*bands+b] {
			looked++
			k := &d.kept[at-1]
			if k.seen == d.asked {
				continue
			}
			k.seen = d.asked
			if k.group == group && k.similarity(&s.bytes) >= d.threshold {
				return true
			}
		}
	}
	d.exact[exact] = true
	d.kept = append(d.kept, keptRow{group, d.asked, s.bytes})
	for b := range bands {
		d.next = append(d.next, d.first[keys[b]])
		d.first[keys[b]] = int32(len(d.kept))
	}
	return false
}
