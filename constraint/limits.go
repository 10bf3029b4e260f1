package constraint

// Limits bound what a schema and an answer may cost. A zero field means the
// value of Standard.
type Limits struct {
	SchemaBytes    int // size of the source
	SchemaNodes    int // JSON values in the schema
	SchemaDepth    int // nesting of the schema
	SchemaVisits   int // schema objects visited with every $ref expanded
	AnswerBytes    int
	AnswerNodes    int
	AnswerDepth    int
	ValidationWork int // one unit: one schema object applied to one instance node
}

// Standard is the default preset, Strict the one for untrusted schemas.
var (
	Standard = Limits{
		SchemaBytes: 1 << 20, SchemaNodes: 16384, SchemaDepth: 64, SchemaVisits: 65536,
		AnswerBytes: 1 << 20, AnswerNodes: 65536, AnswerDepth: 64, ValidationWork: 1 << 24,
	}
	Strict = Limits{
		SchemaBytes: 65536, SchemaNodes: 4096, SchemaDepth: 32, SchemaVisits: 4096,
		AnswerBytes: 1 << 20, AnswerNodes: 65536, AnswerDepth: 64, ValidationWork: 1 << 24,
	}
)

// OrStandard fills zero fields from Standard.
func (l Limits) OrStandard() Limits {
	fill := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	fill(&l.SchemaBytes, Standard.SchemaBytes)
	fill(&l.SchemaNodes, Standard.SchemaNodes)
	fill(&l.SchemaDepth, Standard.SchemaDepth)
	fill(&l.SchemaVisits, Standard.SchemaVisits)
	fill(&l.AnswerBytes, Standard.AnswerBytes)
	fill(&l.AnswerNodes, Standard.AnswerNodes)
	fill(&l.AnswerDepth, Standard.AnswerDepth)
	fill(&l.ValidationWork, Standard.ValidationWork)
	return l
}
