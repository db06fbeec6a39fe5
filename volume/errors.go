package volume

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Definite marks an error of SetUp or Stage that leaves the volume as it was before the call: it was not
// begun, or it was reverted. A volume that was uncertain before remains so. After any other error the
// volume is uncertain. Definite(nil) is nil.
func Definite(err error) error {
	if err == nil {
		return nil
	}
	return definite{err}
}

type definite struct{ error }

func (d definite) Unwrap() error { return d.error }

func isDefinite(err error) bool {
	_, ok := errors.AsType[definite](err)
	return ok
}

// A notBegun is an error before a step had any effect: the state is unchanged.
type notBegun struct{ error }

func (n notBegun) Unwrap() error { return n.error }

func isNotBegun(err error) bool {
	_, ok := errors.AsType[notBegun](err)
	return ok
}

// The values of Error.Phase, in order.
const (
	notProcessed  = "not processed" // the claim is not bound, no plugin supports it, or it is invalid
	waitingAttach = "waiting to be attached"
	waitingDevice = "waiting for its device" // the device is being staged
	settingUp     = "being set up"
	tearingDown   = "being removed"
	backingOff    = "in back-off" // the last step failed
)

// An Error reports why one volume was not mounted, or not unmounted, in time.
type Error struct {
	// Volume is the name in the pod's spec, or the name of the directory if an earlier
	// agent mounted the volume.
	Volume string

	// Phase is "not processed", "waiting to be attached", "waiting for its device",
	// "being set up", "being removed" or "in back-off".
	Phase string

	// RetryAt is the time of the next attempt; zero unless the volume is in back-off.
	RetryAt time.Time

	// Err is the error of the last attempt; nil if none has completed.
	Err error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("volume %q is %s", e.Volume, e.Phase)
	if !e.RetryAt.IsZero() {
		text += " until " + e.RetryAt.UTC().Format(time.RFC3339)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// A PodError is the error of [Manager.Mount] or [Manager.Unmount]. It wraps Err and the errors of the
// volumes.
type PodError struct {
	Op      string   // "mount" or "unmount"
	Volumes []*Error // that are not mounted, or still mounted, sorted by name

	// Err is the reason why the call returned: context.DeadlineExceeded after
	// Config.WaitTimeout, or the error of the context. It is nil if a volume could not be
	// processed, for which Mount does not wait.
	Err error
}

// Error returns the kubelet's text followed by the error of each volume.
func (e *PodError) Error() string {
	if e.Op == opUnmount {
		return e.unmountText()
	}
	return e.mountText()
}

// The values of PodError.Op.
const (
	opMount   = "mount"
	opUnmount = "unmount"
)

func (e *PodError) mountText() string {
	var unmounted, unattached, unprocessed, details []string
	for _, v := range e.Volumes {
		unmounted = append(unmounted, v.Volume)
		switch v.Phase {
		case waitingAttach:
			unattached = append(unattached, v.Volume)
		case notProcessed:
			unprocessed = append(unprocessed, v.Volume)
		}
		if v.Err != nil && e.Err == nil && v.Phase == notProcessed {
			details = append(details, v.Err.Error())
		} else if v.Err != nil {
			details = append(details, v.Error())
		}
	}
	text := fmt.Sprintf("unmounted volumes=%v, unattached volumes=%v, failed to process volumes=%v", unmounted, unattached, unprocessed)
	if e.Err != nil {
		details = append([]string{e.Err.Error()}, details...)
	}
	return text + ": " + strings.Join(details, "; ")
}

func (e *PodError) unmountText() string {
	var names []string
	var details strings.Builder
	for _, v := range e.Volumes {
		names = append(names, v.Volume)
		if v.Err != nil {
			details.WriteString("; " + v.Error())
		}
	}
	return fmt.Sprintf("mounted volumes=%v: %v%s", names, e.Err, details.String())
}

// Unwrap returns Err and the errors of the volumes.
func (e *PodError) Unwrap() []error {
	var all []error
	if e.Err != nil {
		all = append(all, e.Err)
	}
	for _, v := range e.Volumes {
		all = append(all, v)
	}
	return all
}
