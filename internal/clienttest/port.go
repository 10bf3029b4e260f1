package clienttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports from which Port takes: below what systems give to connections and to
// listeners that ask for any port (32768 on Linux, 49152 elsewhere), so that
// no other test has the port before the program listens on it.
const firstPort, endPort = 15000, 32000

// Port is a port of the loopback address that nobody listens on, for a program
// that has to be told one.
func Port(t testing.TB) int {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// FreePort is Port where there is no test at hand.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(endPort-firstPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("no port of 127.0.0.1 is free: %w", last)
}
