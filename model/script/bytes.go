package script

import (
	"errors"

	"agentgraph/constraint"
)

// endToken is the end token of constraint.ByteVocabulary.
const endToken = 256

// wanted yields what the script would say next; wish is -1 when it would end.
type wanted struct {
	text    string
	pos     int
	forever bool
	end     bool // prefers the end at every place
}

func (r *reply) wants() *wanted {
	switch {
	case r.EndFirst:
		return &wanted{end: true}
	case r.SpacesForever:
		return &wanted{text: " ", forever: true}
	case r.Prefer != "":
		return &wanted{text: r.Prefer, forever: true}
	}
	return &wanted{text: r.Text}
}

func (w *wanted) wish() int {
	switch {
	case w.end:
		return -1
	case w.forever:
		return int(w.text[w.pos%len(w.text)])
	case w.pos < len(w.text):
		return int(w.text[w.pos])
	}
	return -1
}

// took tells what was taken in the end. A script that wrote its JSON with
// spaces skips them where the grammar is compact.
func (w *wanted) took(b byte) {
	if w.forever {
		if int(b) == w.wish() {
			w.pos++
		}
		return
	}
	p := w.pos
	for p < len(w.text) && isSpace(w.text[p]) && w.text[p] != b {
		p++
	}
	if p < len(w.text) && w.text[p] == b {
		w.pos = p + 1
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// free says what the script says.
func free(w *wanted) step {
	return func() (byte, bool, bool, error) {
		b := w.wish()
		if b < 0 {
			return 0, false, true, nil
		}
		w.pos++
		return byte(b), false, false, nil
	}
}

// masked holds what the script says to a constraint, byte by byte.
func masked(con *constraint.Constraint, w *wanted) (step, func(), error) {
	vocab, err := constraint.ByteVocabulary()
	if err != nil {
		return nil, nil, err
	}
	m, err := con.NewMatcher(vocab)
	if err != nil {
		return nil, nil, err
	}
	mask := make([]uint32, vocab.MaskWords())
	var forced, buf []uint32
	next := func() (byte, bool, bool, error) {
		if len(forced) > 0 {
			b := byte(forced[0])
			forced = forced[1:]
			w.took(b)
			return b, true, false, nil
		}
		if m.Stopped() {
			if !m.Accepting() {
				return 0, false, false, errors.New("the constraint's matcher stopped before the answer was complete")
			}
			return 0, false, true, nil
		}
		if buf, err = m.Forced(buf[:0]); err != nil {
			return 0, false, false, err
		}
		if len(buf) > 0 && buf[0] != endToken {
			forced = buf
			for i, t := range forced {
				if t == endToken {
					forced = forced[:i]
					break
				}
			}
			if err := m.Accept(forced...); err != nil {
				return 0, false, false, err
			}
			b := byte(forced[0])
			forced = forced[1:]
			w.took(b)
			return b, true, false, nil
		}
		if err := m.Mask(mask); err != nil {
			return 0, false, false, err
		}
		t := choose(mask, w)
		switch {
		case t < 0:
			return 0, false, false, errors.New("the constraint allows no byte and no end here")
		case t == endToken:
			return 0, false, true, nil
		}
		if err := m.Accept(uint32(t)); err != nil {
			return 0, false, false, err
		}
		w.took(byte(t))
		return byte(t), false, false, nil
	}
	return next, m.Close, nil
}

// choose takes the wish when the mask allows it; then, for a script with
// spaces that a compact grammar does not want, the next that is no space;
// then the end; then what brings an answer nearest to its end.
func choose(mask []uint32, w *wanted) int {
	allowed := func(t int) bool { return t >= 0 && mask[t/32]&(1<<(t%32)) != 0 }
	wish := w.wish()
	if wish < 0 {
		wish = endToken
	}
	if allowed(wish) {
		return wish
	}
	if !w.forever {
		p := w.pos
		for p < len(w.text) && isSpace(w.text[p]) {
			p++
		}
		if p < len(w.text) && allowed(int(w.text[p])) {
			return int(w.text[p])
		}
	}
	if allowed(endToken) {
		return endToken
	}
	for _, b := range []byte("\"}]/") {
		if allowed(int(b)) {
			return int(b)
		}
	}
	for b := '0'; b <= 'z'; b++ {
		if allowed(int(b)) {
			return int(b)
		}
	}
	for t := range 256 {
		if allowed(t) {
			return t
		}
	}
	return -1
}
