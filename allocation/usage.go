package allocation

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// DecreasesMemoryLimit reports whether the step lowers a memory limit or sets the first one, so that
// CheckDecrease requires the usage.
func (s *ResizeStep) DecreasesMemoryLimit() bool {
	return s.Resource == v1.ResourceMemory && more(s.After.Limits, s.Before.Limits, v1.ResourceMemory)
}

// CheckDecrease returns an error if steps would set a memory limit to the current usage or below,
// so that the kernel would kill processes. The resize must not be applied then; the next sync
// retries it. It must be called shortly before the steps are applied.
//
// usage is the current memory usage in bytes by container, and of the pod's cgroup with the key "".
// Missing values are unknown and do not cause an error.
func CheckDecrease(steps []ResizeStep, usage map[string]int64) error {
	var errs []error
	for i := range steps {
		s := &steps[i]
		if !s.DecreasesMemoryLimit() {
			continue
		}
		limit := s.After.Limits.Memory().Value()
		used, ok := usage[s.Container]
		switch {
		case !ok || used < limit:
		case s.Container != "":
			errs = append(errs, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", s.Container, limit, used))
		case s.kind == podLimit:
			errs = append(errs, fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", limit, used))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("cannot decrease memory limits: %w", oneLine{errors.Join(errs...), errs})
}

// oneLine formats joined errors in one line: "a", or "[a, b]".
type oneLine struct {
	error
	all []error
}

func (e oneLine) Error() string {
	if len(e.all) == 1 {
		return e.all[0].Error()
	}
	texts := make([]string, len(e.all))
	for i, err := range e.all {
		texts[i] = err.Error()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (e oneLine) Unwrap() []error { return e.all }
