//go:build !unix

package runner

import "io/fs"

const openFlags = 0

func inodeNumber(fs.FileInfo) uint64 { return 0 }

func fileIdentity(fs.FileInfo) string { return "" }

func bootID() string { return "" }
