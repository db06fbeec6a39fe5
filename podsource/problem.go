package podsource

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Problem is a manifest that a [File] or [URL] cannot use, or a failure to read the source.
type Problem struct {
	// Path of the manifest, or of the source as a whole. For a URL it is the URL, followed by
	// "#namespace/name" for one pod of a list.
	Path string

	// Err is the error; it begins with the path.
	Err error

	// Since is when Path had its first error without a success since then.
	Since time.Time

	// LastGood is when the last valid version of the manifest was read, which stays in
	// effect. Zero means that there is none, so its pod does not run.
	LastGood time.Time
}

// A manifestState is the state of one manifest.
type manifestState struct {
	path string
	sum  [32]byte  // of the content from which pod or err results
	pod  *v1.Pod   // the last valid version; nil if there was none
	good time.Time // when the last valid version was last read
	err  error     // of the present version; nil if it is valid
}

// selectPods returns the pods and the problems of manifests, which are sorted. If two contain the same
// pod (by full name or UID), the first is used; the second is a problem until the first is removed. old
// are the previous problems.
func selectPods(manifests []manifestState, old []Problem, now time.Time) (pods []*v1.Pod, problems []Problem) {
	since := make(map[string]time.Time, len(old))
	for _, p := range old {
		since[p.Path] = p.Since
	}
	uids := make(map[types.UID]string) // the path of a UID
	names := make(map[string]string)
	for _, m := range manifests {
		p := Problem{Path: m.path, Err: m.err, Since: now}
		if pod := m.pod; pod != nil {
			name := runtime.PodFullName(pod)
			first, object := names[name], fmt.Sprintf("pod %q", name)
			if first == "" {
				first, object = uids[pod.UID], fmt.Sprintf("pod UID %q", pod.UID)
			}
			if first == "" {
				uids[pod.UID], names[name] = m.path, m.path
				pods = append(pods, pod)
				p.LastGood = m.good
			} else if m.err == nil {
				p.Err = fmt.Errorf("podsource: %s: %s is also in %s, which comes first", m.path, object, first)
			}
		}
		if p.Err == nil {
			continue
		}
		if t, ok := since[m.path]; ok {
			p.Since = t
		}
		problems = append(problems, p)
	}
	return pods, problems
}

// problemOf returns the index of the problem with path, or -1.
func problemOf(problems []Problem, path string) int {
	return slices.IndexFunc(problems, func(p Problem) bool { return p.Path == path })
}

// problemChanges returns the problems that are new or have another error, and the paths whose problems
// are resolved.
func problemChanges(old, problems []Problem) (changed []Problem, resolved []string) {
	was, is := make(map[string]string, len(old)), make(map[string]bool, len(problems))
	for _, p := range old {
		was[p.Path] = p.Err.Error()
	}
	for _, p := range problems {
		is[p.Path] = true
		if text, ok := was[p.Path]; !ok || text != p.Err.Error() {
			changed = append(changed, p)
		}
	}
	for _, p := range old {
		if !is[p.Path] {
			resolved = append(resolved, p.Path)
		}
	}
	return changed, resolved
}
