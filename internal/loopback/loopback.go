// Package loopback tells whether the host of an address is this machine alone.
package loopback

import "net/netip"

// Host reports that a host, without a port, is "localhost" or a loopback
// address. Other names are not looked up: what they stand for may change.
func Host(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
