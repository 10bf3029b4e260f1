package validate

// maxFindingBytes bounds the findings of one answer, written as a JSON array
// of objects with the members code, instance and schema.
const maxFindingBytes = 2048

// bounded cuts a list of findings to the bounds. Its pointers are bounded
// already, so that at least one finding always fits.
func bounded(findings []Finding) []Finding {
	total := len("[]")
	for i, f := range findings {
		total += f.size()
		if i == maxFindings || total > maxFindingBytes {
			return findings[:i]
		}
	}
	return findings
}

func (f Finding) size() int {
	return len(`{"code":,"instance":,"schema":},`) + len(quote(f.Code)) + len(quote(f.Instance)) + len(quote(f.Schema))
}
