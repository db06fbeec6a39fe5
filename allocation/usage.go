package allocation

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Usage is how much memory a pod uses right now, in bytes. What is not in here
// is not known, and no reason to refuse anything.
type Usage struct {
	Pod        *int64
	Containers map[string]int64
}

// NarrowsMemory reports whether the step lowers a memory limit, or sets one where
// there was none: what CheckDecrease has to know the usage for.
func (s *Step) NarrowsMemory() bool {
	return s.Resource == v1.ResourceMemory && more(s.After.Limits, s.Before.Limits, v1.ResourceMemory)
}

// CheckDecrease returns an error if steps would take a memory limit to, or
// below, what is in use: the kernel would kill something (al-18). Nothing of
// the resize is to be done then, and the next sync tries again. It is to be
// asked shortly before the steps are carried out.
func CheckDecrease(steps []Step, now Usage) error {
	var refused []error
	for i := range steps {
		s := &steps[i]
		if !s.NarrowsMemory() {
			continue
		}
		limit := s.After.Limits.Memory().Value()
		if s.Kind == PodLimit && now.Pod != nil && *now.Pod >= limit {
			refused = append(refused, fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", limit, *now.Pod))
		}
		if used, known := now.Containers[s.Container]; s.Kind == ContainerStep && known && used >= limit {
			refused = append(refused, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", s.Container, limit, used))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("cannot decrease memory limits: %w", oneLine{errors.Join(refused...), refused})
}

// oneLine shows joined errors in one line: "a", or "[a, b]".
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
