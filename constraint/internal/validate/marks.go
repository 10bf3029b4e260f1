package validate

// marks notes which members or items of one value a schema has evaluated,
// for unevaluatedProperties and unevaluatedItems.
type marks struct {
	all  bool
	bits []uint64
}

func (m *marks) set(i int) {
	if m.all {
		return
	}
	for len(m.bits) <= i>>6 {
		m.bits = append(m.bits, 0)
	}
	m.bits[i>>6] |= 1 << (i & 63)
}

func (m *marks) has(i int) bool {
	return m.all || i>>6 < len(m.bits) && m.bits[i>>6]&(1<<(i&63)) != 0
}

func (m *marks) merge(o *marks) {
	if o.all {
		m.all = true
	}
	if m.all {
		m.bits = nil
		return
	}
	for len(m.bits) < len(o.bits) {
		m.bits = append(m.bits, 0)
	}
	for i, w := range o.bits {
		m.bits[i] |= w
	}
}
