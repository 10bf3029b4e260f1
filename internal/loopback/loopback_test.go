package loopback

import "testing"

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "::ffff:10.0.0.1": false, "[::1]": false,
		"127.0.0.1:80": false, "127.1": false, "0x7f000001": false, "localhost.example.org": false, "127.0.0.1.example.org": false,
	} {
		if got := Host(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
