//go:build unix

package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A difference is a value that differs between the kubelet and the agent.
type difference struct {
	subject        string // "CreateContainer web/main"
	path           string // "request.config.linux.resources.cpu_period"; empty: the whole subject
	kubelet, agent string
}

// unset is the value of a field that only the other one has.
const unset = "unset"

func (d difference) String() string {
	return fmt.Sprintf("%s: kubelet %s, agent %s", d.where(), d.kubelet, d.agent)
}

// where returns subject and path, which reasons refer to.
func (d difference) where() string {
	if d.path == "" {
		return d.subject
	}
	return d.subject + " " + d.path
}

// diff returns the differences of two documents, sorted by subject and path.
func diff(kubelet, agent document) []difference {
	var found []difference
	for _, subject := range union(kubelet, agent) {
		before, inKubelet := kubelet[subject]
		after, inAgent := agent[subject]
		switch {
		case !inAgent:
			found = append(found, difference{subject: subject, kubelet: show(before), agent: unset})
		case !inKubelet:
			found = append(found, difference{subject: subject, kubelet: unset, agent: show(after)})
		default:
			d := differ{subject: subject}
			d.values("", before, after)
			found = append(found, d.found...)
		}
	}
	return found
}

// differ compares the values of a subject.
type differ struct {
	subject string
	found   []difference
}

func (d *differ) add(path, kubelet, agent string) {
	d.found = append(d.found, difference{d.subject, path, kubelet, agent})
}

func (d *differ) values(path string, kubelet, agent any) {
	if before, after := elements(kubelet), elements(agent); path == "" && d.distinct() && len(before)+len(after) > 2 {
		d.lists(path, before, after) // if only one of them is a list
		return
	}
	switch before := kubelet.(type) {
	case map[string]any:
		if after, ok := agent.(map[string]any); ok {
			d.maps(path, before, after)
			return
		}
	case []any:
		if after, ok := agent.([]any); ok {
			d.lists(path, before, after)
			return
		}
	}
	if canonical(kubelet) != canonical(agent) {
		d.add(path, show(kubelet), show(agent))
	}
}

// distinct reports whether the subject is a list without repetitions and in an order without a meaning.
func (d *differ) distinct() bool { return strings.HasPrefix(d.subject, "requests ") }

// elements returns those of a list, and another value as the only element of one.
func elements(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func (d *differ) maps(path string, kubelet, agent map[string]any) {
	for _, key := range union(kubelet, agent) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		before, inKubelet := kubelet[key]
		after, inAgent := agent[key]
		switch {
		case !inAgent:
			d.add(at, show(before), unset)
		case !inKubelet:
			d.add(at, unset, show(after))
		default:
			d.values(at, before, after)
		}
	}
}

// lists compares lists whose elements have names by these names, and others by their
// positions if they are equally long and have an order, else by the elements that only one of them has.
func (d *differ) lists(path string, kubelet, agent []any) {
	before, after := named(kubelet), named(agent)
	if before != nil && after != nil {
		for _, name := range union(before, after) {
			at := fmt.Sprintf("%s[%s]", path, name)
			b, inKubelet := before[name]
			a, inAgent := after[name]
			switch {
			case !inAgent:
				d.add(at, show(b), unset)
			case !inKubelet:
				d.add(at, unset, show(a))
			default:
				d.values(at, b, a)
			}
		}
		if b, a := order(kubelet, after), order(agent, before); canonical(b) != canonical(a) {
			d.add(path+"[order]", show(b), show(a))
		}
		return
	}
	if len(kubelet) == len(agent) && !(path == "" && d.distinct()) {
		for i := range kubelet {
			d.values(fmt.Sprintf("%s[%d]", path, i), kubelet[i], agent[i])
		}
		return
	}
	for _, one := range without(kubelet, agent) {
		d.add(path+"[]", show(one), unset)
	}
	for _, one := range without(agent, kubelet) {
		d.add(path+"[]", unset, show(one))
	}
}

// keys are fields that identify elements of lists.
var keys = []string{"name", "key", "type", "container_path", "containerPath"}

// nameOf returns the name of an element of a list.
func nameOf(v any) string {
	for _, key := range keys {
		if name := text(v, key); name != "" {
			return name
		}
	}
	return ""
}

// named returns the elements of a list by their names; nil if they have none, or equal ones.
func named(list []any) map[string]any {
	found := make(map[string]any, len(list))
	for _, one := range list {
		name := nameOf(one)
		if _, double := found[name]; double || name == "" {
			return nil
		}
		found[name] = one
	}
	return found
}

// order returns the names of the elements that another list has as well.
func order(list []any, other map[string]any) (names []any) {
	for _, one := range list {
		if _, ok := other[nameOf(one)]; ok {
			names = append(names, nameOf(one))
		}
	}
	return names
}

// without returns the elements of a list that another one does not have, or does not have as often.
func without(list, other []any) (rest []any) {
	others := map[string]int{}
	for _, one := range other {
		others[canonical(one)]++
	}
	for _, one := range list {
		if others[canonical(one)]--; others[canonical(one)] < 0 {
			rest = append(rest, one)
		}
	}
	return rest
}

func union[M ~map[string]any](a, b M) []string {
	all := maps.Clone(a)
	if all == nil {
		all = M{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// show returns a value as JSON.
func show(v any) string { return canonical(v) }
