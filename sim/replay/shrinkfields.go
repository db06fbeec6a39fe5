package replay

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/sim/record"
)

// essential are fields that are kept, so that a recording remains readable.
var essential = map[string]bool{
	"at": true, "start": true, "source": true, "method": true, "uid": true, "name": true, "namespace": true, "containers": true, "metadata": true, "spec": true, "image": true,
}

// factual are fields of sandboxes and containers that are kept: without them, an answer
// describes what no runtime does, and the replay may fail also without the defect.
var factual = map[string]bool{
	"attempt": true, "state": true, "createdAt": true, "startedAt": true, "finishedAt": true, "exitCode": true, "reason": true, "podSandboxId": true,
	"annotations": true, podconfig.AnnotationHash: true, podconfig.AnnotationRestartCount: true,
}

// skeletons are the fields that are kept at first, by the kind of a frame; a name of a
// field is kept at any depth below it.
var skeletons = map[string][]string{
	"header": {"start"},
	"pods": {
		"source", "changed", "removed", "metadata", "uid", "name", "namespace", "deletionTimestamp", "deletionGracePeriodSeconds", "spec",
		"containers", "initContainers", "image", "restartPolicy", "terminationGracePeriodSeconds",
	},
	"call": {
		"method", "request", "answer", "error", "took", "code", "message", "containerId", "podSandboxId", "config", "sandboxConfig", "metadata", "name", "uid",
		"namespace", "attempt", "timeout", "image", "status", "id", "state", "createdAt", "startedAt", "finishedAt", "exitCode", "reason", "labels",
		podUIDLabel, "containers", "items", "annotations", podconfig.AnnotationHash, podconfig.AnnotationRestartCount,
	},
	"event": {
		"message", "containerId", "containersStatuses", "id", "metadata", "name", "attempt", "state", "createdAt", "startedAt", "finishedAt", "exitCode", "reason",
		"labels", podUIDLabel,
	},
}

// dropFields drops fields of the remaining frames: first all that are not in a skeleton, and then single ones.
func (s *shrinker) dropFields() {
	for i := range s.best {
		if s.best[i].End != nil {
			continue
		}
		t, err := frameTree(s.best[i])
		if err != nil {
			continue
		}
		for kind, kept := range skeletons {
			if body, ok := t[kind]; ok {
				keep(body, kept)
				s.tryFrame(i, t)
			}
		}
		if s.best[i].Header == nil {
			s.dropEach(i)
		}
	}
}

// keep removes the fields of v that are not kept.
func keep(v any, kept []string) {
	switch v := v.(type) {
	case []any:
		for _, value := range v {
			keep(value, kept)
		}
	case map[string]any:
		for key, value := range v {
			if slices.Contains(kept, key) {
				keep(value, kept)
			} else {
				delete(v, key)
			}
		}
	}
}

// tryFrame tries frames in which one is replaced.
func (s *shrinker) tryFrame(i int, t map[string]any) bool {
	prune(t)
	f, err := fromTree(t)
	if err != nil {
		return false
	}
	next := slices.Clone(s.best)
	next[i] = f
	return s.try(next)
}

// A path leads to a value in JSON: keys of objects (string) and indexes of lists (int).
type path []any

// dropEach drops single fields and elements of frame i, the outer ones first.
func (s *shrinker) dropEach(i int) {
	queue := []path{{}}
	for len(queue) > 0 && !s.done() {
		p := queue[0]
		queue = queue[1:]
		t, err := frameTree(s.best[i])
		if err != nil {
			return
		}
		node, ok := at(t, p)
		if !ok {
			continue
		}
		for _, key := range keysOf(node) {
			name, isName := key.(string)
			child := append(slices.Clone(p), key)
			kept := isName && (essential[name] || len(p) == 0 || factual[name] && s.best[i].Pods == nil)
			if !kept && s.tryFrame(i, without(s.best[i], child)) {
				continue
			}
			queue = append(queue, child)
		}
	}
}

// keysOf returns the keys of an object, sorted, or the indexes of a list, the last one
// first, so that earlier ones stay valid.
func keysOf(v any) (out []any) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			out = append(out, key)
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	case []any:
		for i := len(v) - 1; i >= 0; i-- {
			out = append(out, i)
		}
	}
	return out
}

// at returns the value of a path.
func at(v any, p path) (any, bool) {
	for _, key := range p {
		switch node := v.(type) {
		case map[string]any:
			name, _ := key.(string)
			if v = node[name]; v == nil {
				return nil, false
			}
		case []any:
			i, ok := key.(int)
			if !ok || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// without returns the JSON of a frame without the value of a path.
func without(f record.Frame, p path) map[string]any {
	t, err := frameTree(f)
	if err != nil {
		return nil
	}
	last := len(p) - 1
	parent, _ := at(t, p[:last])
	switch parent := parent.(type) {
	case map[string]any:
		delete(parent, p[last].(string))
	case []any:
		i := p[last].(int)
		if i >= len(parent) || last == 0 {
			return t
		}
		shorter := slices.Delete(slices.Clone(parent), i, i+1)
		grandparent, _ := at(t, p[:last-1])
		switch g := grandparent.(type) {
		case map[string]any:
			g[p[last-1].(string)] = shorter
		case []any:
			g[p[last-1].(int)] = shorter
		}
	}
	return t
}

// runtimeID is the ID that a runtime gives.
var runtimeID = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// simplifyNames replaces long IDs by short ones, and rounds times.
func (s *shrinker) simplifyNames() {
	names, next := map[string]string{}, slices.Clone(s.best)
	for i, f := range next {
		t, err := frameTree(f)
		if err != nil {
			continue
		}
		text, err := marshal(t)
		if err != nil {
			continue
		}
		for _, id := range runtimeID.FindAllString(string(text), -1) {
			if names[id] == "" {
				names[id] = fmt.Sprintf("id-%d", len(names)+1)
			}
		}
		replaced := runtimeID.ReplaceAllStringFunc(string(text), func(id string) string { return names[id] })
		var changed record.Frame
		if json.Unmarshal([]byte(replaced), &changed) == nil {
			next[i] = changed
		}
	}
	if len(names) > 0 {
		s.try(next)
	}
	s.try(wholeSecond(s.best))
	for _, unit := range []time.Duration{time.Second, 100 * time.Millisecond, time.Millisecond} {
		if s.try(roundTimes(s.best, unit)) {
			break
		}
	}
}
