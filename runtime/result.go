package runtime

import (
	"errors"
	"fmt"
)

// Err joins the errors of the failed actions, formatted as in the kubelet: failed to
// "StartContainer" for "web" with ErrImagePull: "…". It is nil if all succeeded.
func (r SyncResult) Err() error {
	var errs []error
	for _, a := range r.Actions {
		if a.Err != nil {
			errs = append(errs, &ActionError{a})
		}
	}
	return errors.Join(errs...)
}

// Postponed reports whether the action was not attempted, since the back-off of the container's restarts or of the
// pulls of its image has not ended.
func (a Action) Postponed() bool {
	return a.Err != nil && (a.Reason == "CrashLoopBackOff" || a.Reason == "ImagePullBackOff")
}

// An ActionError is the error of a failed action; it unwraps to Action.Err.
type ActionError struct {
	Action Action
}

func (e *ActionError) Error() string {
	a := e.Action
	if a.Reason == "" {
		return fmt.Sprintf("failed to %q for %q: %v", string(a.Kind), a.Target, a.Err)
	}
	return fmt.Sprintf("failed to %q for %q with %s: %q", string(a.Kind), a.Target, a.Reason, a.Message)
}

func (e *ActionError) Unwrap() error { return e.Action.Err }
