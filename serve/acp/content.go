package acp

import (
	"fmt"
	"path"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/serve"
)

// promptText makes one text of a prompt's blocks: texts as they are, links as
// [name](uri), and embedded texts as sections at the end, in the form of a turn
// with several inputs: "## " and the address, a blank line, the text.
// A block of another type may have been read as any of these, so the type
// decides.
func promptText(blocks []acp.ContentBlock) (string, error) {
	var text strings.Builder
	var sections []string
	for i, b := range blocks {
		switch {
		case b.Text != nil && b.Text.Type == "text":
			text.WriteString(b.Text.Text)
		case b.ResourceLink != nil && b.ResourceLink.Type == "resource_link":
			fmt.Fprintf(&text, "[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri)
		case b.Resource != nil && b.Resource.Type == "resource" && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			fmt.Fprintf(&text, "[%s](%s)", path.Base(r.Uri), r.Uri)
			sections = append(sections, "## "+r.Uri+"\n\n"+strings.TrimRight(r.Text, "\r\n"))
		default:
			return "", &serve.ArgumentError{Argument: "prompt", Reason: fmt.Sprintf("block %d is not text; models here read text", i+1)}
		}
	}
	return strings.Join(append([]string{text.String()}, sections...), "\n\n"), nil
}
