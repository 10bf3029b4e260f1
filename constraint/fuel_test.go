package constraint

import "testing"

// An answer whose tokens are asked about one by one, with no mask between them,
// may be as long as one that has a mask for each.
func TestLongAnswerWithoutMasks(t *testing.T) {
	needNative(t)
	for name, c := range map[string]*Constraint{
		"json":  mustCompile(t, JSON, `{"type":"string","maxLength":60000}`),
		"regex": mustCompile(t, Regex, `"[a-z ]{1,60000}"`),
		"lark":  mustCompile(t, Lark, "start: \"\\\"\" WORD{1,20000} \"\\\"\"\nWORD: /[a-z]{2,9} /\n"),
		"items": mustCompile(t, JSON, `{"type":"array","items":{"anyOf":[{"type":"string","pattern":"^[a-z]{1,40}$"},{"type":"string","format":"date-time"},{"type":"string","format":"email"}]}}`),
	} {
		m := byteMatcher(t, c)
		text := `"`
		unit := "many words of an answer "
		if name == "items" {
			text, unit = "[", `"word","abcde","2026-11-30T12:00:00Z","ab.cd@ef.org",`
		}
		for len(text) < 20_000 {
			text += unit
		}
		for i := range len(text) {
			if m.num == nil || !m.num.inNumber {
				if !m.Allows(uint32(text[i])) {
					t.Errorf("%s: byte %d, %q, is not allowed", name, i, text[i])
					break
				}
				m.Allowed([]uint32{uint32(text[i]), 'x', 'y', 'z'})
			}
			if err := m.Accept(uint32(text[i])); err != nil {
				t.Errorf("%s: byte %d: %v", name, i, err)
				break
			}
		}
	}
}
