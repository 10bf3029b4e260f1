package model

import "errors"

// ErrNotRendered is returned by Render of a model whose prompt is made
// elsewhere, on a server.
var ErrNotRendered = errors.New("the prompt is rendered by the server and not known here")
