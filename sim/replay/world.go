package replay

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

// A world answers the calls of a replayed agent from a recording.
type world struct {
	x         *index
	start     time.Time // virtual wall clock at the start of the recording
	tolerance time.Duration
	model     *model        // of a checked replay; nil: the recording has the answers
	settle    time.Duration // of a checked replay: after the end of the recording
	canceled  func() bool   // the caller's context is done
	diverged  chan struct{}

	mu      sync.Mutex
	outputs comparer
	stopped bool // later outputs are not compared
	cursors map[string]*cursor
	paced   map[string]instant // of the last delays
	things  map[string]*replayed
	pulls   map[string]progress
	changed chan struct{} // closed when a thing changes
	draws   draws
	calls   int // of the CRI
	unread  int // reads without a recorded call of this time
	created int // things that were not recorded

	failures  map[containerKey][]*localFailure // of containers that were not created
	unmatched map[string]int                   // reads that the recorded agent did not make

	missed  map[types.UID]int           // passed times of index.missing
	written map[types.UID]*v1.PodStatus // the last ones of the replayed agent; nil after a deletion
	table   *podworker.Table
}

// slack is how much earlier than the recorded one a read may be: the recorded agent took time between
// two calls, a replayed one does not. After lag, a recorded read that is not the nearest one is skipped.
const (
	slack = 100 * time.Millisecond
	lag   = 5 * time.Millisecond
)

// A cursor is the position in a queue of recorded reads.
type cursor struct {
	next int
	last *call
}

// A step is how far a call of the replayed agent is.
type step int

const (
	before step = iota
	during
	after
)

// A replayed is a thing with the calls of the replayed agent for it.
type replayed struct {
	*thing
	create, start, stop, remove progress
	request                     []byte  // of one that was not recorded
	again                       []*call // that stopped a sandbox that was stopped before, and were not replayed
}

// An instant is a time, and the number of delays that were asked for at it.
type instant struct {
	at time.Duration
	n  int
}

// A progress is a step and its time.
type progress struct {
	step step
	at   time.Duration
}

func (p *progress) advance(s step, now time.Duration) {
	if s > p.step {
		*p = progress{s, now}
	}
}

func newWorld(x *index, start time.Time, tolerance time.Duration) *world {
	w := &world{
		x: x, start: start, tolerance: tolerance, diverged: make(chan struct{}, 1), cursors: map[string]*cursor{}, paced: map[string]instant{},
		things: map[string]*replayed{}, pulls: map[string]progress{}, changed: make(chan struct{}), missed: map[types.UID]int{}, unmatched: map[string]int{}, written: map[types.UID]*v1.PodStatus{}, table: new(podworker.Table),
		outputs: comparer{tolerance: tolerance, length: x.length, lanes: map[laneKey]*lane{}, pods: maps.Clone(x.pods)},
	}
	for id, t := range x.things {
		v := &replayed{thing: t}
		if t.create == nil {
			v.create.step = after // an earlier agent created it
		}
		w.things[id] = v
	}
	for i, c := range x.calls {
		if t := w.stoppedAgain(c.method, c.request, c); t != nil {
			t.again = append(t.again, c)
		} else if w.compares(c.method) {
			key, action := w.action(c.method, c.request)
			w.outputs.expect(key, &output{
				begin: c.begin, end: c.end, index: c.index, key: action, body: requestTree(c.method, c.request), call: c, frame: i,
			})
		}
	}
	w.expectStatuses()
	w.expectProbes()
	w.expectOperations()
	w.outputs.seal()
	w.draws, w.failures = newDraws(x), x.localFailures()
	return w
}

// paceKey returns what the delays of a call depend on: its kind, since the requests that
// create things have the directory of this replay.
func (w *world) paceKey(method, readKey string, request []byte) string {
	if !changes[method] {
		return readKey
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key, action := w.action(method, request)
	return string(key.pod) + key.kind + action
}

// compares reports whether calls of a method are compared. If only one pod is replayed, garbage is collected at other
// times.
func (w *world) compares(method string) bool {
	return changes[method] && !unreplayed[method] && (w.x.only == "" || method != "RemoveContainer" && method != "RemovePodSandbox")
}

// now returns the time since the start of the recording.
func (w *world) now() time.Duration { return time.Since(w.start) }

// action returns the lane of a changing call and its name.
func (w *world) action(method string, request []byte) (laneKey, string) {
	f := parse(request)
	key := laneKey{w.x.podOf(f), "calls"}
	switch t := w.things[f.ContainerID+f.PodSandboxID]; {
	case method == "PullImage" || method == "RemoveImage":
		name := ""
		if f.Image != nil {
			name = f.Image.Image
		}
		return laneKey{"", "image " + name}, method // the order of pulls of several pods depends on the Go scheduler
	case method == "RunPodSandbox" && f.Config != nil:
		return key, fmt.Sprintf("%s, attempt %d", method, f.Config.Metadata.Attempt)
	case method == "CreateContainer" && f.Config != nil:
		return key, fmt.Sprintf("%s %s, attempt %d", method, f.Config.Metadata.Name, f.Config.Metadata.Attempt)
	case t != nil && (method == "RemoveContainer" || method == "RemovePodSandbox"):
		return laneKey{t.pod, removals + t.String()}, method
	case t != nil && t.sandbox == "":
		return laneKey{t.pod, "calls"}, fmt.Sprintf("%s, attempt %d", method, t.attempt)
	case t != nil:
		return laneKey{t.pod, "calls"}, fmt.Sprintf("%s %s, attempt %d", method, t.name, t.attempt)
	}
	return key, method + " " + f.ContainerID + f.PodSandboxID
}

// exchange makes a call: answer is set to the recorded answer.
func (w *world) exchange(ctx context.Context, method string, request, answer proto.Message) error {
	text := encode(request)
	key := readKey(method, text)
	pace := w.paceKey(method, key, text)
	if err := w.pace(ctx, pace); err != nil {
		return err
	}
	if err := w.takeTurn(ctx, method, pace, text); err != nil {
		return err
	}
	w.mu.Lock()
	if w.calls++; w.calls == w.mostCalls() {
		w.wake()
	}
	if w.model != nil {
		w.mu.Unlock()
		return w.model.exchange(ctx, method, key, pace, text, answer)
	}
	began, extra := w.now(), false
	var c *call
	if method == "CreateContainer" {
		if err := w.notCreated(text); err != nil {
			w.mu.Unlock()
			return err
		}
	}
	if t := w.stoppedAgain(method, text, nil); t != nil {
		c = t.stopAgain(w.now(), w.tolerance)
	} else if w.compares(method) {
		if c = w.change(method, text); c == nil && w.outputs.inProgress(w.now()) {
			c = &call{hangs: true}
		}
	} else if changes[method] {
		c = nil
	} else if w.unmatched[key] > 0 {
		w.unmatched[key]--
	} else if c, extra = w.read(key); extra {
		w.unread++
	}
	w.mu.Unlock()
	if err := w.wait(ctx, pace, began, c); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c = w.existing(key, text, began, c)
	if c != nil && c.err != nil {
		return newError(c.err)
	}
	if c == nil {
		return w.answer(method, text, answer)
	}
	if err := decode(c.answer, answer); err != nil {
		return err
	}
	if changes[method] {
		w.done(method, text, c.answer)
		if f := parse(text); method == "PullImage" && f.Image != nil {
			w.pulls[f.Image.Image] = progress{after, w.now()}
		}
		return nil
	}
	return w.correct(c, began, text, answer)
}

// mostCalls is the number of calls after which a replay is abandoned: an agent that
// retries without a delay would not let time advance.
func (w *world) mostCalls() int {
	n := 20*len(w.x.calls) + 20_000
	if w.model != nil { // its recording may have no calls
		const week = 7 * 24 * 60 * 60
		n += 20 * min(int((w.x.end+w.settle)/time.Second), week)
	}
	return n
}

// change matches a changing call with a recorded one. The caller holds mu.
func (w *world) change(method string, request []byte) *call {
	key, action := w.action(method, request)
	o := w.match(key, action, requestTree(method, request), false)
	if o == nil {
		return nil
	}
	for _, t := range w.x.changed(method, request, o.call.answer) {
		w.step(w.things[t.id], method, during)
	}
	return o.call
}

// existing returns c, or another read with the same request if c does not fit to what the replayed agent has done: if
// it failed because the recorded agent had removed the thing, or if only one of the two
// agents has pulled the image. The caller holds mu.
func (w *world) existing(key string, request []byte, began time.Duration, c *call) *call {
	if c == nil {
		return nil
	}
	f := parse(request)
	if c.method == "ImageStatus" && f.Image != nil {
		return w.beforeOrAfterPull(w.x.pulls[f.Image.Image], w.pulls[f.Image.Image], key, began, c)
	}
	if c.err == nil || c.err.Code != codes.NotFound.String() || changes[c.method] {
		return c
	}
	t := w.things[f.ContainerID+f.PodSandboxID]
	if t == nil || t.thing.remove == nil || t.remove.step != before {
		return c
	}
	found := c
	for _, earlier := range w.x.reads[key] {
		if earlier.begin < c.begin && earlier.err == nil && !earlier.hangs {
			found = earlier
		}
	}
	return found
}

// beforeOrAfterPull returns the last read before a pull or the first one after it if c is on the wrong side of it.
// An image is absent before its pull if there is none.
func (w *world) beforeOrAfterPull(pull *span, replayed progress, key string, began time.Duration, c *call) *call {
	relation, found := relate(recordedStep(pull, c), replayed, began), c
	if relation == same {
		return c
	}
	if relation == behind {
		found = &call{method: c.method, begin: c.begin, end: c.end, index: c.index}
	}
	for _, other := range w.x.reads[key] {
		if other.err != nil || other.hangs {
			continue
		}
		if s := recordedStep(pull, other); relation == behind && s == before {
			found = other
		} else if relation == ahead && s == after {
			return other
		}
	}
	return found
}

// match compares an output. The caller holds mu.
func (w *world) match(key laneKey, action string, body any, ordered bool) *output {
	if w.stopped || w.now() > w.x.end {
		return nil
	}
	if w.model != nil {
		return w.outputs.loose(key, action)
	}
	defer w.wake()
	if key.kind == statuses {
		return w.outputs.matchStatus(key, w.now(), action, body)
	}
	return w.outputs.match(key, w.now(), action, body, ordered)
}

// wake notifies the main goroutine. It does not block.
func (w *world) wake() {
	select {
	case w.diverged <- struct{}{}:
	default:
	}
}

// done marks the things of a successful call as changed. The caller holds mu.
func (w *world) done(method string, request, answer []byte) {
	for _, t := range w.x.changed(method, request, answer) {
		w.step(w.things[t.id], method, after)
	}
}

// step sets how far a call is. The caller holds mu.
func (w *world) step(t *replayed, method string, s step) {
	if t == nil {
		return
	}
	switch method {
	case "RunPodSandbox", "CreateContainer":
		t.create.advance(s, w.now())
	case "StartContainer":
		t.start.advance(s, w.now())
	case "StopContainer", "StopPodSandbox":
		t.stop.advance(s, w.now())
	case "RemoveContainer", "RemovePodSandbox":
		t.remove.advance(s, w.now())
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// read returns the recorded call for a read, and whether it is of another time; nil if there is none. The
// caller holds mu.
func (w *world) read(key string) (c *call, extra bool) {
	q, cur := w.x.reads[key], w.cursors[key]
	if cur == nil {
		cur = &cursor{}
		w.cursors[key] = cur
	}
	now := w.now()
	for cur.next+1 < len(q) && q[cur.next].begin+lag < now && (q[cur.next+1].begin-now).Abs() < (q[cur.next].begin-now).Abs() {
		cur.last = q[cur.next]
		cur.next++
	}
	switch {
	case cur.next < len(q) && q[cur.next].begin <= now+slack:
		cur.last = q[cur.next]
		cur.next++
		return cur.last, false
	case cur.last == nil && cur.next < len(q):
		return q[cur.next], true
	case cur.last == nil || cur.last.err == nil || cur.last.err.Code != codes.Unavailable.String() || !w.x.reachable(cur.last.end, now):
		return cur.last, true
	case cur.next < len(q) && q[cur.next].begin-now <= now-cur.last.end:
		cur.last = q[cur.next]
		cur.next++
		return cur.last, false
	}
	for _, earlier := range slices.Backward(q[:cur.next]) {
		if earlier.err == nil && !earlier.hangs {
			return earlier, true
		}
	}
	return nil, true
}

// wait blocks for the time of a call that began at a time: until its recorded end, or for its recorded
// duration if it is of another time.
func (w *world) wait(ctx context.Context, key string, began time.Duration, c *call) error {
	if c == nil {
		return nil
	}
	if c.hangs {
		<-ctx.Done()
		return contextError(ctx)
	}
	return w.sleepUntil(ctx, key, aligned(began, c.begin, c.end, w.tolerance))
}

// aligned returns the end of an operation that began at a time.
func aligned(began, recordedBegin, recordedEnd, tolerance time.Duration) time.Duration {
	if (began - recordedBegin).Abs() <= tolerance {
		return max(began, recordedEnd)
	}
	return began + recordedEnd - recordedBegin
}

// sleepUntil waits until a time of the recording, and some nanoseconds more that depend on key.
func (w *world) sleepUntil(ctx context.Context, key string, at time.Duration) error {
	return w.sleep(ctx, w.delay(key, at))
}

// pace waits for some nanoseconds, so that no two calls are made at the same instant: their order would
// be that of the Go scheduler. While the recorded process did not run, it waits until that ran again.
func (w *world) pace(ctx context.Context, key string) error {
	if end := w.x.resumed(w.now()); end > 0 {
		return w.sleepUntil(ctx, key, end)
	}
	return w.sleep(ctx, w.delay(key, 0))
}

// delay returns the time until at, or zero if that has passed, and some nanoseconds more
// that depend on key and on the time, not on the delays before: two replays whose times
// differed for a moment have the same times again after the next recorded time.
func (w *world) delay(key string, at time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.delayLocked(key, at)
}

func (w *world) delayLocked(key string, at time.Duration) time.Duration {
	now := w.now()
	at = max(at, now)
	last := w.paced[key]
	if last.at != at {
		last = instant{at: at}
	}
	last.n++
	w.paced[key] = last
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", at, last.n, key)
	return at - now + time.Duration(1+h.Sum64()%2000)
}

func (w *world) sleep(ctx context.Context, d time.Duration) error {
	if w.canceled() {
		w.wake()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// contextError is the error of a gRPC client whose context is done.
func contextError(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }

// errNotRecorded is the error of a call that no answer is known for.
func errNotRecorded(method string) error {
	return status.Errorf(codes.Unavailable, "replay: no %s was recorded", method)
}

// name sets the name of a pod that is in no recorded set. The caller holds mu.
func (w *world) name(uid types.UID, namespace, name string) {
	if w.outputs.pods[uid] == "" {
		w.outputs.pods[uid] = namespace + "/" + name
	}
}
