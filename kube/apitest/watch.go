package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// maxPending is the number of events that a watch may lag behind before it is closed.
const maxPending = 100_000

// A watcher is an open watch.
type watcher struct {
	call    Call
	matcher *matcher
	news    chan struct{} // capacity 1; pending or an end has changed
	dropped chan struct{} // closed to interrupt the watch

	pending []delivery // guarded by Server.mu
	expired bool       // guarded by Server.mu; the history was compacted
	version int64      // guarded by Server.mu; of the last event of the resource
}

// A delivery is an event as it appears to a watch with a selector.
type delivery struct {
	kind watch.EventType
	item *item
}

// Watches returns the number of open watches that match all of want, as with Calls.
func (s *Server) Watches(want ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for w := range s.watches {
		if w.call.has(want) {
			n++
		}
	}
	return n
}

// DropWatches interrupts the watches that match, as the restart of a proxy does.
func (s *Server) DropWatches(want ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, o := range s.watches {
		if w.call.has(want) {
			delete(s.watches, w)
			delete(o.watchers, w)
			close(w.dropped)
		}
	}
}

// deliverLocked queues an event if the watch selects it.
func (w *watcher) deliverLocked(e event) {
	w.version = e.version
	d, ok := w.seen(e)
	if !ok {
		return
	}
	w.pending = append(w.pending, d)
	if len(w.pending) > maxPending {
		w.pending, w.expired = nil, true
	}
	w.notify()
}

func (w *watcher) expireLocked() {
	w.expired = true
	w.notify()
}

func (w *watcher) notify() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// seen returns an event as it appears to the watch, and whether it does.
func (w *watcher) seen(e event) (delivery, bool) {
	if ns := w.call.Namespace; ns != "" && ns != e.key.namespace {
		return delivery{}, false
	}
	was := e.was != nil && w.matcher.matches(e.was.object)
	is := e.is != nil && w.matcher.matches(e.is.object)
	switch {
	case was && is:
		return delivery{watch.Modified, e.is}, true
	case is:
		return delivery{watch.Added, e.is}, true
	case was && e.is != nil: // it left the selector
		return delivery{watch.Deleted, e.left()}, true
	case was:
		return delivery{watch.Deleted, e.last}, true
	}
	return delivery{}, false
}

// left returns the previous object with the version of the event.
func (e event) left() *item {
	o := detached(e.was.object)
	o.SetResourceVersion(strconv.FormatInt(e.version, 10))
	return &item{kind: e.was.kind, object: o, version: e.version}
}

// watching are the parameters of a watch.
type watching struct {
	matcher   *matcher
	version   int64
	some      bool // version is set
	initial   bool // watch-list
	bookmarks bool
	timeout   time.Duration
}

func (s *Server) watching(r *request) (watching, error) {
	var p watching
	var err error
	if p.matcher, err = r.matcher(); err != nil {
		return p, err
	}
	get := r.query.Get
	p.initial = get("sendInitialEvents") == "true"
	p.bookmarks = get("allowWatchBookmarks") == "true" || get("allowWatchBookmarks") == "1"
	match := get("resourceVersionMatch")
	switch {
	case get("sendInitialEvents") != "" && s.NoWatchList:
		return p, invalidOptions("List", field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"))
	case get("sendInitialEvents") != "" && match != string(metav1.ResourceVersionMatchNotOlderThan):
		return p, invalidOptions("List", field.Forbidden(field.NewPath("resourceVersionMatch"), "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	case get("sendInitialEvents") == "" && match != "":
		return p, invalidOptions("List", field.Forbidden(field.NewPath("resourceVersionMatch"), "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	}
	if p.version, err = parseVersion(get("resourceVersion")); err != nil {
		return p, err
	}
	p.some = p.version > 0
	if get("sendInitialEvents") == "false" {
		p.some = true
	}
	if text := get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return p, apierrors.NewBadRequest("timeoutSeconds: " + err.Error())
		}
		p.timeout = time.Duration(seconds) * time.Second
	}
	return p, nil
}

// open registers a watch. Its initial events are pending; their version is returned.
func (s *Server) open(r *request, p watching) (*watcher, int64, error) {
	w := &watcher{call: r.Call, matcher: p.matcher, news: make(chan struct{}, 1), dropped: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.table.of(r.kind)
	current := s.table.version
	if p.version > current && p.initial {
		return nil, 0, tooLarge(p.version, current)
	}
	w.version = current
	switch {
	case p.initial || !p.some:
		for _, i := range sorted(o.in(r.Namespace), p.matcher) {
			w.pending = append(w.pending, delivery{watch.Added, i})
		}
	case p.version == 0:
	case p.version < current:
		events, ok := o.since(p.version)
		w.expired = !ok
		for _, e := range events {
			if d, ok := w.seen(e); ok {
				w.pending = append(w.pending, d)
			}
		}
	}
	if s.watches == nil {
		s.watches = map[*watcher]*objects{}
	}
	s.watches[w] = o
	o.watchers[w] = struct{}{}
	return w, current, nil
}

func (s *Server) closeWatch(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.watches[w]; o != nil {
		delete(o.watchers, w)
		delete(s.watches, w)
	}
}

// take returns what happened since the last call.
func (s *Server) take(w *watcher) (pending []delivery, version int64, expired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending, w.pending = w.pending, nil
	return pending, w.version, w.expired
}

// bookmarkPeriod is the time between two bookmarks.
const bookmarkPeriod = time.Minute

// serveWatch sends events until the watch ends.
func (s *Server) serveWatch(ctx context.Context, w http.ResponseWriter, r *request) {
	p, err := s.watching(r)
	if err != nil {
		writeError(w, err)
		return
	}
	flusher, ok := w.(http.Flusher)
	if !ok {
		writeError(w, apierrors.NewInternalError(http.ErrNotSupported))
		return
	}
	me, current, err := s.open(r, p)
	if err != nil {
		writeError(w, err)
		return
	}
	defer s.closeWatch(me)
	mime := r.format.mime()
	if r.format.protobuf {
		mime += ";stream=watch"
	}
	w.Header().Set("Content-Type", mime)
	w.WriteHeader(http.StatusOK)
	out := &eventWriter{server: s, out: w, request: r}
	var over, tick <-chan time.Time
	if p.timeout > 0 {
		timer := time.NewTimer(p.timeout)
		defer timer.Stop()
		over = timer.C
	}
	if p.bookmarks {
		ticker := time.NewTicker(bookmarkPeriod)
		defer ticker.Stop()
		tick = ticker.C
	}
	marked := int64(0)
	for begun := false; ; begun = true {
		pending, version, expired := s.take(me)
		if expired {
			status := apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.").Status()
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			out.write(watch.Error, &status)
			flusher.Flush()
			return
		}
		for _, d := range pending {
			if !out.send(d) {
				return
			}
		}
		if !begun && p.initial {
			if !out.bookmark(current, true) {
				return
			}
			marked = current
		}
		flusher.Flush()
		select {
		case <-ctx.Done():
			return
		case <-me.dropped:
			return
		case <-over:
			return
		case <-tick:
			if version > marked && !out.bookmark(version, false) {
				return
			}
			marked = version
		case <-me.news:
		}
	}
}

// An eventWriter writes the events of a watch.
type eventWriter struct {
	server  *Server
	out     http.ResponseWriter
	request *request
	columns bool // the columns of a table were written
}

// send writes the event of an item, whose encoded form the watches share.
func (w *eventWriter) send(d delivery) bool {
	if w.request.format.as == "Table" && w.columns {
		t, err := w.server.tabulate(w.request.kind, []object{d.item.object}, d.item.object, w.request.gvk)
		if err != nil {
			return false
		}
		t.ColumnDefinitions = nil
		return w.write(d.kind, t)
	}
	w.columns = true
	data, err := w.server.encoded(d.item, w.request.format)
	return err == nil && w.frame(d.kind, data)
}

// bookmark writes a bookmark; the one after the initial events is marked.
func (w *eventWriter) bookmark(version int64, initial bool) bool {
	o := w.request.kind.make(w.request.kind.versions[0])
	o.SetResourceVersion(strconv.FormatInt(version, 10))
	if initial {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	shown, err := w.server.presented(w.request.kind, o, w.request.format)
	return err == nil && w.write(watch.Bookmark, shown)
}

func (w *eventWriter) write(t watch.EventType, o runtime.Object) bool {
	data, err := encode(o, w.request.format.protobuf)
	return err == nil && w.frame(t, data)
}

// frame writes an encoded object in the frame of an event.
func (w *eventWriter) frame(t watch.EventType, data []byte) bool {
	var buf bytes.Buffer
	if w.request.format.protobuf {
		e := &metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: data}}
		if protobuf.NewRawSerializer(nil, nil).Encode(e, &buf) != nil {
			return false
		}
		framed := protobuf.LengthDelimitedFramer.NewFrameWriter(w.out)
		_, err := framed.Write(buf.Bytes())
		return err == nil
	}
	name, err := json.Marshal(t)
	if err != nil {
		return false
	}
	buf.Grow(len(data) + 40)
	buf.WriteString(`{"type":`)
	buf.Write(name)
	buf.WriteString(`,"object":`)
	buf.Write(data)
	buf.WriteString("}\n")
	_, err = w.out.Write(buf.Bytes())
	return err == nil
}
