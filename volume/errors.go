package volume

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Definite marks an error of SetUp or Stage after which nothing of the volume is
// there: nothing was begun, or all was undone. Without it a volume that failed
// counts as half there (vol-21).
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

// A notBegun is an error before a step was begun: what was there is there.
type notBegun struct{ error }

func (n notBegun) Unwrap() error { return n.error }

func isNotBegun(err error) bool {
	_, ok := errors.AsType[notBegun](err)
	return ok
}

// A Phase is how far a volume has come that is waited for.
type Phase string

// The phases, in their order (F-41).
const (
	// NotProcessed: it is not known yet what the volume is: its claim is not
	// there or not bound, no plugin knows it, something else is wrong with it.
	NotProcessed Phase = "not processed"

	// WaitingAttach: it is not attached to the node.
	WaitingAttach Phase = "waiting to be attached"

	// WaitingDevice: its device is being made ready for all pods.
	WaitingDevice Phase = "waiting for its device"

	// SettingUp: it is being set up for this pod.
	SettingUp Phase = "being set up"

	// TearingDown: it is being removed.
	TearingDown Phase = "being removed"

	// BackingOff: the last step failed, and is tried again at Until.
	BackingOff Phase = "in back-off"
)

// A NotReady tells why one volume was not ready, or not gone, in time.
type VolumeError struct {
	// Volume is the name in the pod's spec, or, of one that is to go and is
	// not in a spec, of its directory.
	Volume string
	Phase  Phase

	// Until is when it is tried again, if it is in back-off.
	RetryAt time.Time

	// Err is how the last try has failed. Nil: no try has ended yet.
	Err error
}

func (e *VolumeError) Error() string {
	text := fmt.Sprintf("volume %q is %s", e.Volume, e.Phase)
	if !e.RetryAt.IsZero() {
		text += " until " + e.RetryAt.UTC().Format(time.RFC3339)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns how the last try has failed.
func (e *VolumeError) Unwrap() error { return e.Err }

// A MountError is the error of [Manager.Mount]: the volumes that are not ready,
// sorted by name, and what ended the wait. It wraps all of their errors.
type MountError struct {
	Volumes []*VolumeError

	// Err is what ended the wait: context.DeadlineExceeded after
	// Config.WaitTimeout, the context's error, or nil if there is nothing to
	// wait for, because something is wrong with a volume (vol-28).
	Err error
}

// Error begins as the kubelet's does (vol-27), and then tells of each volume.
func (e *MountError) Error() string {
	var unmounted, unattached, unprocessed, details []string
	for _, v := range e.Volumes {
		unmounted = append(unmounted, v.Volume)
		switch v.Phase {
		case WaitingAttach:
			unattached = append(unattached, v.Volume)
		case NotProcessed:
			unprocessed = append(unprocessed, v.Volume)
		}
		if v.Err != nil && e.Err == nil && v.Phase == NotProcessed {
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

// Unwrap returns what ended the wait, and the errors of the volumes.
func (e *MountError) Unwrap() []error { return unwrapAll(e.Err, e.Volumes) }

// An UnmountError is the error of [Manager.Unmount]: the volumes that are still
// there, sorted by name, and what ended the wait (vol-29).
type UnmountError struct {
	Volumes []*VolumeError
	Err     error
}

// Error begins as the kubelet's does, and then tells of each volume.
func (e *UnmountError) Error() string {
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

// Unwrap returns what ended the wait, and the errors of the volumes.
func (e *UnmountError) Unwrap() []error { return unwrapAll(e.Err, e.Volumes) }

func unwrapAll(err error, volumes []*VolumeError) []error {
	var all []error
	if err != nil {
		all = append(all, err)
	}
	for _, v := range volumes {
		all = append(all, v)
	}
	return all
}
