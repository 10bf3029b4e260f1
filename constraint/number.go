package constraint

// A model that likes one digit writes it for ever inside a number without
// bounds. numberState follows the JSON text of an answer and caps the digits:
// past the cap a number ends as soon as the grammar lets it end.

const (
	significantDigits = 17 // a double needs no more
	exponentDigits    = 3
)

// digitCaps are what a number may have where it could end. Constants, enums
// and bounds with more digits raise them.
type digitCaps struct{ integer, fraction int }

type numberState struct {
	caps            digitCaps
	gate            string // what must come before anything is a number
	shut            bool   // something else came
	inString, slash bool
	inNumber        bool
	fraction, exp   bool
	digits          int // from the first that is not 0, or the decimal point
	expDigits       int
}

// feed follows the bytes of the answer.
func (s *numberState) feed(text []byte) {
	for _, b := range text {
		switch {
		case s.shut:
		case s.gate != "":
			switch {
			case b == s.gate[0]:
				s.gate = s.gate[1:]
			case b != ' ' && b != '\n':
				s.shut = true
			}
		case s.inString:
			switch {
			case s.slash:
				s.slash = false
			case b == '\\':
				s.slash = true
			case b == '"':
				s.inString = false
			}
		case b >= '0' && b <= '9', b == '-' && !s.inNumber:
			if !s.inNumber {
				s.inNumber, s.fraction, s.exp, s.digits, s.expDigits = true, false, false, 0, 0
			}
			switch {
			case b == '-':
			case s.exp:
				s.expDigits++
			case s.digits > 0 || b != '0' || s.fraction:
				s.digits++
			}
		case s.inNumber && b == '.':
			s.fraction = true
		case s.inNumber && (b == 'e' || b == 'E'):
			s.exp = true
		case s.inNumber && s.exp && (b == '+' || b == '-'):
		default:
			s.inNumber = false
			s.inString = b == '"'
		}
	}
}

// room is how many more digits the number may take; -1 outside numbers.
func (s *numberState) room() int {
	switch {
	case !s.inNumber:
		return -1
	case s.exp:
		return max(0, exponentDigits-s.expDigits)
	case s.fraction:
		return max(0, s.caps.fraction-s.digits)
	}
	return max(0, s.caps.integer-s.digits)
}

// digitToken is a token that carries a number on by n digits.
type digitToken struct {
	id uint32
	n  int
}

// digitTokens finds the tokens that begin with a digit, a point or an
// exponent, with the digits they add, and the mask of those that leave a
// number unfinished.
func digitTokens(tokens [][]byte, words int) ([]digitToken, []uint32) {
	var out []digitToken
	carry := make([]uint32, words)
	for id, t := range tokens {
		if len(t) == 0 || t[0] == 0xFF {
			continue
		}
		n, i := 0, 0
		for ; i < len(t); i++ {
			if t[i] >= '0' && t[i] <= '9' {
				n++
			} else if t[i] != '.' && t[i] != 'e' && t[i] != 'E' && t[i] != '+' && t[i] != '-' {
				break
			}
		}
		if i == 0 {
			continue
		}
		out = append(out, digitToken{uint32(id), n})
		if i == len(t) {
			carry[id/32] |= 1 << (id % 32)
		}
	}
	return out, carry
}

// capDigits takes tokens that would make the number longer than its cap out
// of the mask, if the number can end here.
func (s *numberState) capDigits(v *Vocabulary, mask []uint32) {
	room := s.room()
	if room < 0 || room > 0 && room >= v.maxRun {
		return
	}
	canEnd := false
	for i, w := range mask {
		if w&^v.carry[i] != 0 {
			canEnd = true
			break
		}
	}
	if !canEnd {
		return
	}
	for _, t := range v.digits {
		if t.n > room || room == 0 {
			mask[t.id/32] &^= 1 << (t.id % 32)
		}
	}
}
