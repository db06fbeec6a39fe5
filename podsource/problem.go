package podsource

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Problem is something that a [File] source cannot use.
type Problem struct {
	// Path of the manifest, or of the whole source.
	Path string

	// Err says what is wrong, beginning with the path.
	Err error

	// Since when there has been something wrong with Path, whatever it was.
	Since time.Time

	// LastGood is when the version was read that is in force instead of this
	// one. Zero: none is, so that a pod is missing.
	LastGood time.Time
}

// An entry is the state of one manifest.
type manifestState struct {
	path string
	sum  [32]byte  // of the content that pod or err is from
	pod  *v1.Pod   // the last good version; nil if there was none
	good time.Time // when the last good version was last seen in the file
	err  error     // why the present version is not it; nil if it is
}

// settle decides what is delivered of manifests, which are in sorted order. Of
// two that hold one pod (the same full name, or the same UID) the first has
// it; the other is a problem, and comes into force once the first is gone. old
// are the problems so far.
func selectPods(manifests []manifestState, old []Problem, now time.Time) (pods []*v1.Pod, problems []Problem) {
	since := make(map[string]time.Time, len(old))
	for _, p := range old {
		since[p.Path] = p.Since
	}
	uids := make(map[types.UID]string) // to the path
	names := make(map[string]string)
	for _, m := range manifests {
		p := Problem{Path: m.path, Err: m.err, Since: now}
		if pod := m.pod; pod != nil {
			name := runtime.PodFullName(pod)
			first, what := names[name], fmt.Sprintf("pod %q", name)
			if first == "" {
				first, what = uids[pod.UID], fmt.Sprintf("pod UID %q", pod.UID)
			}
			if first == "" {
				uids[pod.UID], names[name] = m.path, m.path
				pods = append(pods, pod)
				p.LastGood = m.good
			} else if m.err == nil {
				p.Err = fmt.Errorf("podsource: %s: %s is also in %s, which comes first", m.path, what, first)
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

// news returns the problems that are new or have changed, and the paths that
// have none any more.
func problemChanges(old, problems []Problem) (changed []Problem, mended []string) {
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
			mended = append(mended, p.Path)
		}
	}
	return changed, mended
}
