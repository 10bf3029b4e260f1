package record

import "github.com/google/uuid"

// NewID names a turn, or an attempt at one; ids sort by time.
func NewID() string {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}
	return id.String()
}
