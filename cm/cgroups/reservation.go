package cgroups

import "fmt"

// A Reservation selects the pods and containers whose requested memory the kernel does not reclaim (rules
// cm-38, cm-39). It has an effect with version 2 only.
type Reservation int

// The reservations. ReserveNone is the kubelet's default since 1.36; ReserveAll is the original behavior of
// MemoryQoS.
const (
	ReserveNone   Reservation = iota
	ReserveTiered             // memory.min for Guaranteed pods, memory.low for Burstable ones
	ReserveAll                // memory.min for both
)

// String returns "none", "tiered" or "all".
func (r Reservation) String() string {
	switch r {
	case ReserveNone:
		return "none"
	case ReserveTiered:
		return "tiered"
	case ReserveAll:
		return "all"
	}
	return fmt.Sprintf("Reservation(%d)", int(r))
}
