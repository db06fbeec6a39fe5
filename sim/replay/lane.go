package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A laneKey identifies outputs whose order is compared: the calls of a pod, its statuses, the tries of a
// probe. The pod is empty for calls of the node.
type laneKey struct {
	pod  types.UID
	kind string
}

// An output is something that the recorded agent did.
type output struct {
	begin, end time.Duration
	index      int    // of its frame
	key        string // of equal actions: "StartContainer main, attempt 0"
	body       any    // that is compared
	matched    bool
	call       *call  // of the output; nil for others
	container  string // of a probe
	optional   bool   // need not be replayed
	frame      int    // position in the list of the index that it is from
}

// A lane has the recorded outputs in the order of their begins.
type lane struct {
	outputs []*output
	next    int // the first one that may be unmatched
	done    []string
	extra   *Divergence // a replayed status that may be a transient one; nil: none
}

// A Divergence is the first difference between a recording and its replay.
type Divergence struct {
	// At is the time of the replayed action, or of the recorded one if it has no counterpart, since
	// Header.Start.
	At time.Duration

	// Pod is "namespace/name"; empty for calls of the node.
	Pod string
	UID types.UID

	// What is compared: "calls", "statuses", the probe, or the removal of a container or sandbox.
	What string

	// Recorded and Replayed are the two actions. Empty: there is none.
	Recorded, Replayed string

	// Reason is the difference.
	Reason string

	known time.Duration // when the replay is known to differ; zero means At
}

func (d *Divergence) String() string {
	none := func(s string) string { return cmp.Or(s, "nothing") }
	return fmt.Sprintf("%.3fs %s, %s: %s\n  recorded: %s\n  replayed: %s",
		d.At.Seconds(), cmp.Or(d.Pod, "node"), d.What, d.Reason, none(d.Recorded), none(d.Replayed))
}

// A comparer compares outputs. Its methods require the lock of the world.
type comparer struct {
	tolerance time.Duration
	length    time.Duration // of the recording
	lanes     map[laneKey]*lane
	pods      map[types.UID]string
	found     []*Divergence
	count     int // compared outputs
}

func (c *comparer) lane(key laneKey) *lane {
	l := c.lanes[key]
	if l == nil {
		l = &lane{}
		c.lanes[key] = l
	}
	return l
}

func (c *comparer) expect(key laneKey, o *output) {
	l := c.lane(key)
	l.outputs = append(l.outputs, o)
}

// seal orders the outputs. It is called once, after the last expect.
func (c *comparer) seal() {
	for key, l := range c.lanes {
		for _, o := range l.outputs {
			o.matched = key.removal() && o.failed()
		}
		slices.SortStableFunc(l.outputs, func(a, b *output) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.index, b.index)) })
	}
}

// eligible returns the recorded outputs that may be next: those that no unmatched one precedes,
// and failed calls that were made concurrently. ordered means that only the first one is.
func (l *lane) eligible(ordered bool) (out []*output) {
	for l.next < len(l.outputs) && l.outputs[l.next].matched {
		l.next++
	}
	earliest, failed := time.Duration(1<<63-1), true
	for _, o := range l.outputs[l.next:] {
		if o.matched {
			continue
		}
		if len(out) > 0 {
			failed = failed && o.failedWith(out[0])
		}
		if o.begin > earliest && !failed || ordered && len(out) == 1 {
			break
		}
		out = append(out, o)
		earliest = min(earliest, o.end)
	}
	return out
}

// failedWith reports whether o and an earlier output are calls of one method that failed at about the same time.
// Concurrent calls, such as those that stop the containers of a pod, do not overlap if the runtime cannot be reached.
func (o *output) failedWith(earlier *output) bool {
	a, b := earlier.call, o.call
	return a != nil && b != nil && a.err != nil && b.err != nil && a.method == b.method && b.begin-a.begin <= slack
}

// match returns the recorded output of a replayed one, and nil if there is none.
func (c *comparer) match(key laneKey, at time.Duration, action string, body any, ordered bool) *output {
	l := c.lane(key)
	c.count++
	l.done = append(l.done, action+" "+digestOf(body))
	if key.removal() {
		if o := l.failedRemoval(at); o != nil {
			return o
		}
	}
	next := l.eligible(ordered)
	i := slices.IndexFunc(next, func(o *output) bool { return o.key == action })
	if i < 0 {
		d := &Divergence{At: at, Reason: "not in the recording", Replayed: action + " " + short(body)}
		if !l.expects(action) && c.inProgress(at) || len(next) == 0 && key.removal() && at > c.length-c.toleranceOf(key) {
			return nil
		}
		if len(next) > 0 {
			d.Reason = "another one was recorded"
			d.Recorded = text(next[0])
		}
		c.diverged(key, d)
		return nil
	}
	o := next[i]
	o.matched = true
	d := &Divergence{At: at, Recorded: text(o), Replayed: action + " " + short(body)}
	switch early, tolerance := o.begin-at, c.toleranceOf(key); {
	case early.Abs() > tolerance && early > 0:
		d.Reason = fmt.Sprintf("%v earlier than recorded", early.Round(time.Millisecond))
		c.diverged(key, d)
	case early.Abs() > tolerance:
		d.Reason = fmt.Sprintf("%v later than recorded", (-early).Round(time.Millisecond))
		c.diverged(key, d)
	default:
		if d.Reason = difference("", o.body, body, c.tolerance); d.Reason != "" {
			c.diverged(key, d)
		}
	}
	return o
}

// expects reports whether an unmatched output is the action.
func (l *lane) expects(action string) bool {
	return slices.ContainsFunc(l.outputs[l.next:], func(o *output) bool { return !o.matched && o.key == action })
}

func text(o *output) string {
	return fmt.Sprintf("%s %s at %.3fs", o.key, short(o.body), o.begin.Seconds())
}

func (c *comparer) diverged(key laneKey, d *Divergence) {
	d.UID, d.Pod, d.What = key.pod, c.pods[key.pod], key.kind
	c.found = append(c.found, d)
}

// inProgress reports whether an action at this time may have been in progress at the end of the recording: actions are
// recorded at their ends, or after 10 seconds.
func (c *comparer) inProgress(at time.Duration) bool { return at > c.length-10*time.Second }

// statuses is the kind of the lane of statuses.
const statuses = "statuses"

// transient is how long a status may be published by one of the two agents only: whether an agent writes a status
// that soon changes depends on the Go scheduler.
func (c *comparer) transient() time.Duration { return c.tolerance / 2 }

// matchStatus is match for a status. Transient statuses on either side are skipped.
func (c *comparer) matchStatus(key laneKey, at time.Duration, action string, body any) *output {
	l := c.lane(key)
	c.count++
	l.done = append(l.done, action+" "+digestOf(body))
	for i, o := range l.outputs[l.next:] {
		if o.key == action && difference("", o.body, body, c.tolerance) == "" {
			l.extra = nil
			l.next += i + 1
			if early := l.early(l.next-1, at); early.Abs() > c.tolerance {
				d := &Divergence{At: at, Recorded: text(o), Replayed: action + " " + short(body)}
				d.Reason = fmt.Sprintf("%v later than recorded", (-early).Round(time.Millisecond))
				if early > 0 {
					d.Reason = fmt.Sprintf("%v earlier than recorded", early.Round(time.Millisecond))
				}
				c.diverged(key, d)
			}
			return o
		}
		if j := l.next + i + 1; j >= len(l.outputs) || l.outputs[j].begin-o.end > c.transient() {
			break // the recorded agent did not skip it
		}
	}
	if l.extra != nil && at-l.extra.At > c.transient() {
		c.settle(key, at)
	}
	if l.next < len(l.outputs) || !c.inProgress(at) {
		d := &Divergence{At: at, Replayed: action + " " + short(body), Reason: "not in the recording"}
		if l.next < len(l.outputs) {
			o := l.outputs[l.next]
			d.Recorded, d.Reason = text(o), cmp.Or(difference("", o.body, body, c.tolerance), "another one was recorded")
		}
		if l.extra != nil {
			d.At = l.extra.At // the last of several transient statuses is reported
		}
		l.extra = d
	}
	return nil
}

// early returns how much earlier than recorded output i of a lane of statuses is replayed. A
// status that was written when the write before it returned was due at any time during that one.
func (l *lane) early(i int, at time.Duration) time.Duration {
	o := l.outputs[i]
	if at < o.begin && i > 0 && o.begin-l.outputs[i-1].end <= lag {
		return max(0, l.outputs[i-1].begin-at)
	}
	return o.begin - at
}

// settle decides about the status that may be transient.
func (c *comparer) settle(key laneKey, now time.Duration) {
	if l := c.lanes[key]; l.extra != nil && now-l.extra.At >= c.transient() {
		l.extra.known = l.extra.At + c.transient()
		c.diverged(key, l.extra)
		l.extra = nil
	}
}

// loose returns the first recorded output of an action, in any order; nil if there is none.
func (c *comparer) loose(key laneKey, action string) *output {
	for _, o := range c.lane(key).outputs {
		if o.key == action && !o.matched {
			o.matched = true
			return o
		}
	}
	return nil
}

// due returns the time at which the next status is known not to be transient; zero if there is none.
func (c *comparer) due(now time.Duration) (next time.Duration) {
	for key, l := range c.lanes {
		c.settle(key, now)
		if at := l.extra; at != nil && (next == 0 || at.At+c.transient() < next) {
			next = at.At + c.transient()
		}
	}
	return next
}

// digestOf returns a hash of a value.
func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// finish adds the recorded outputs that should have been replayed before end.
func (c *comparer) finish(end time.Duration) {
	for key, l := range c.lanes {
		c.settle(key, end)
		for _, o := range l.outputs {
			o.matched = o.matched || o.optional
		}
		for _, o := range l.eligible(true) {
			if within := c.toleranceOf(key); o.begin+within < end {
				c.diverged(key, &Divergence{At: o.begin, known: o.begin + within, Recorded: text(o), Reason: fmt.Sprintf("not replayed within %v", within)})
			}
		}
	}
}

// first returns the divergence that was known first; nil if there is none.
func (c *comparer) first() *Divergence {
	if len(c.found) == 0 {
		return nil
	}
	return slices.MinFunc(c.found, func(a, b *Divergence) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.known, a.At), cmp.Or(b.known, b.At)), cmp.Compare(a.UID, b.UID), cmp.Compare(a.What, b.What))
	})
}

// digest returns a hash of all replayed outputs, without their times.
func (c *comparer) digest() string {
	h := sha256.New()
	keys := slices.SortedFunc(maps.Keys(c.lanes), func(a, b laneKey) int {
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.kind, b.kind))
	})
	for _, key := range keys {
		for _, line := range c.lanes[key].done {
			fmt.Fprintf(h, "%s %s %s\n", key.pod, key.kind, line)
		}
	}
	_, _ = io.WriteString(h, fmt.Sprint(c.first()))
	return hex.EncodeToString(h.Sum(nil))
}
