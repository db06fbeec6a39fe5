package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/logs"
)

// Limits of the response of a driver for one claim. An allocation has at most 32 devices; a
// driver may return more devices than are allocated.
const (
	maxDevices    = 256
	maxCDIDevices = 64 // of a device
	maxRequests   = 64 // of a device
	maxName       = 253
	maxCDIName    = 1024
)

// checkDevices returns the first error in the devices that a driver returned for a claim.
func checkDevices(devices []dra.Device) error {
	if n := len(devices); n > maxDevices {
		return fmt.Errorf("%d devices, the limit is %d", n, maxDevices)
	}
	for i, d := range devices {
		if err := checkDevice(d); err != nil {
			return fmt.Errorf("device %d (%s/%s): %w", i, logs.Text(d.Pool, maxShown), logs.Text(d.Name, maxShown), err)
		}
		same := func(other dra.Device) bool {
			return other.Pool == d.Pool && other.Name == d.Name && other.ShareID == d.ShareID && slices.Equal(other.Requests, d.Requests)
		}
		if slices.ContainsFunc(devices[:i], same) {
			return fmt.Errorf("device %s/%s occurs twice", d.Pool, d.Name)
		}
	}
	return nil
}

func checkDevice(d dra.Device) error {
	switch {
	case d.Pool == "":
		return errors.New("pool name is empty")
	case d.Name == "":
		return errors.New("device name is empty")
	case len(d.Pool) > maxName || len(d.Name) > maxName || len(d.ShareID) > maxName:
		return fmt.Errorf("a name is longer than %d bytes", maxName)
	case len(d.CDI) > maxCDIDevices:
		return fmt.Errorf("%d CDI devices, the limit is %d", len(d.CDI), maxCDIDevices)
	case len(d.Requests) > maxRequests:
		return fmt.Errorf("%d requests, the limit is %d", len(d.Requests), maxRequests)
	}
	for _, r := range d.Requests {
		if len(r) > maxName {
			return fmt.Errorf("a request name is longer than %d bytes", maxName)
		}
	}
	for _, id := range d.CDI {
		if err := checkCDIName(id); err != nil {
			return fmt.Errorf("CDI device %q: %w", logs.Text(id, maxShown), err)
		}
	}
	return nil
}

// checkCDIName returns an error unless name is a fully qualified name of a CDI device,
// "vendor.com/class=device", as version 1.0 of the CDI specification defines it. Runtimes
// fail to create a container with another name.
func checkCDIName(name string) error {
	if len(name) > maxCDIName {
		return fmt.Errorf("longer than %d bytes", maxCDIName)
	}
	kind, device, ok := strings.Cut(name, "=")
	if !ok {
		return errors.New(`no "=": want vendor/class=device`)
	}
	vendor, class, ok := strings.Cut(kind, "/")
	switch {
	case !ok:
		return errors.New(`no "/": want vendor/class=device`)
	case !cdiPart(vendor, "_-.", isLetter):
		return fmt.Errorf("invalid vendor %q", vendor)
	case !cdiPart(class, "_-", isLetter):
		return fmt.Errorf("invalid class %q", class)
	case !cdiPart(device, "_-.:", isAlphanumeric):
		return fmt.Errorf("invalid device %q", device)
	}
	return nil
}

// cdiPart reports whether s begins as specified, ends with a letter or digit, and has only
// letters, digits and the other characters between.
func cdiPart(s, other string, first func(byte) bool) bool {
	if s == "" || !first(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte(other, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool       { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// maxShown is the maximum size in bytes of a name from a driver in messages.
const maxShown = 128
