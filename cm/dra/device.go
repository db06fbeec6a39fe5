package dra

import (
	"slices"
	"strings"
)

// A Device is a device that a driver has prepared.
type Device struct {
	Pool string
	Name string

	// Requests are the requests of the claim that the device satisfies. Empty means all.
	Requests []string

	// CDI are the fully qualified names of CDI devices. May be empty.
	CDI []string

	// ShareID identifies a share of a device that has several. "" means none.
	ShareID string
}

// satisfies reports whether the device satisfies a request of a container. A container
// refers to a request, a device may refer to its subrequest: "gpu/large".
func (d Device) satisfies(request string) bool {
	return request == "" || len(d.Requests) == 0 || slices.ContainsFunc(d.Requests, func(r string) bool {
		base, _, _ := strings.Cut(r, "/")
		return r == request || base == request
	})
}
