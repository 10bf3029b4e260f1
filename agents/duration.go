package agents

import (
	"encoding/json"
	"time"
)

// Duration is a time.Duration written with its unit: "200ms", "10 min" is
// "10m". A bare number has no unit and is refused, except 0.
type Duration time.Duration

// MarshalJSON writes the duration as it would be written in settings.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}
