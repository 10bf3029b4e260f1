package constraint

import (
	"fmt"

	"agentgraph/constraint/internal/llg"
)

// EngineName is the name and version of the engine that makes the masks.
func EngineName() string {
	if !llg.Built {
		return "llguidance"
	}
	return llg.Version()
}

// LocalEngine is what a model that masks in this process can hold. Where says
// to people where the model is configured.
func LocalEngine(where string) Engine {
	e := Engine{Name: EngineName(), Declared: DeclaredLocal, Where: where}
	if llg.Built {
		e.Masks, e.Kinds = true, []Kind{JSON, Regex, Lark, LLG}
	}
	return e
}

// Admit says what will stand behind the promise when the answer comes from e,
// or refuses with a *Refusal when the options ask for more than e can hold.
func (c *Constraint) Admit(e Engine) (EnforcedBy, error) {
	if !e.Holds(c.spec.Kind) {
		if c.opt.Enforce == EnforceValidate {
			return ByValidation, nil
		}
		return "", c.refuse(incapable(e, c.spec.Kind))
	}
	if len(c.unmasked) > 0 && c.opt.Enforce == EnforceMask {
		return "", c.refuse(c.unmasked[0].refusal(e))
	}
	switch {
	case !e.Masks:
		return ByServerValidation, nil
	case !llg.Built:
		return "", c.refuse(&Refusal{Reason: ErrNotBuilt.Error(), NotNative: true})
	case len(c.unmasked) > 0:
		return ByMaskValidation, nil
	}
	return ByMask, nil
}

// refusal words a construct that e does not hold.
func (u Unmasked) refusal(e Engine) *Refusal {
	what := fmt.Sprintf("'%s' is not enforced by %s", u.Construct, e.Name)
	if u.Reason != "" {
		what += " (" + u.Reason + ")"
	}
	return &Refusal{Line: u.Line, Column: u.Column, Construct: u.Construct, Path: u.Path, Capability: true,
		Reason: fmt.Sprintf("schema at %s: %s", pathOrRoot(u.Path), what),
		Hint:   "remove it, or allow it with enforce: validate"}
}

func pathOrRoot(p string) string {
	if p == "" {
		return "the top"
	}
	return p
}

// incapable words a model that declares no constraint of this kind.
func incapable(e Engine, kind Kind) *Refusal {
	r := &Refusal{Construct: string(kind), Capability: true}
	where := ""
	if e.Where != "" {
		where = " (" + e.Where + ")"
	}
	switch e.Declared {
	case DeclaredServer:
		r.Reason = fmt.Sprintf("server %s has not shown that it constrains %s answers", e.Name, kind)
		r.Hint = fmt.Sprintf("ask it again with \"agentgraph models --probe\", declare it with constraints: [%s]%s, or allow validation alone with enforce: validate", kind, where)
	case DeclaredPlugin:
		r.Reason = fmt.Sprintf("plug-in %s declares no %s constraint", e.Name, kind)
		r.Hint = fmt.Sprintf("if it holds one, declare it with constraints: [%s]%s, or allow validation alone with enforce: validate", kind, where)
	case DeclaredScript:
		r.Reason = fmt.Sprintf("script %s declares no %s constraint", e.Name, kind)
		r.Hint = "list the kind under constraints: in the script" + where + ", or allow validation alone with enforce: validate"
	default:
		r.Reason = fmt.Sprintf("%s does not constrain %s answers", e.Name, kind)
		if !llg.Built {
			r.Reason, r.NotNative = ErrNotBuilt.Error(), true
		}
		r.Hint = "use a model that does" + where + ", or allow validation alone with enforce: validate"
	}
	return r
}
