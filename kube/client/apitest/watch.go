package apitest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// A watcher is an open watch.
type watcher struct {
	call    Call
	news    chan struct{} // capacity 1; there are new events
	dropped chan struct{} // closed to interrupt the watch
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
	for w := range s.watches {
		if w.call.has(want) {
			delete(s.watches, w)
			close(w.dropped)
		}
	}
}

func (s *Server) tellLocked() {
	for w := range s.watches {
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// serveWatch sends events until the watch ends.
func (s *Server) serveWatch(ctx context.Context, w http.ResponseWriter, r *request) {
	selected, err := r.selection()
	if err != nil {
		writeError(w, err)
		return
	}
	initial := r.query.Get("sendInitialEvents") == "true"
	if initial && s.NoWatchList {
		writeError(w, apierrors.NewInvalid(r.gvk.GroupKind(), "", nil))
		return
	}
	from, err := strconv.ParseInt(r.query.Get("resourceVersion"), 10, 64)
	if err != nil {
		from = 0
	}
	info := r.encoding()
	out := &eventWriter{
		objects: scheme.Codecs.EncoderForVersion(info.Serializer, r.gvr.GroupVersion()),
		events:  streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(w), scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, r.gvr.GroupVersion())),
	}
	mime := info.MediaType
	if r.Protobuf {
		mime += ";stream=watch"
	}
	w.Header().Set("Content-Type", mime)
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()

	me := &watcher{call: r.Call, news: make(chan struct{}, 1), dropped: make(chan struct{})}
	s.mu.Lock()
	if s.watches == nil {
		s.watches = map[*watcher]struct{}{}
	}
	s.watches[me] = struct{}{}
	version := from
	var first []object
	if initial || from == 0 {
		first, version = s.listLocked(r, selected), s.table.version
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, me)
	}()

	for _, o := range first {
		if !out.write(watch.Added, o) {
			return
		}
	}
	if initial && !out.write(watch.Bookmark, bookmark(r, version)) {
		return
	}
	flush()
	var over <-chan time.Time
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil {
		over = time.After(time.Duration(seconds) * time.Second)
	}
	for {
		s.mu.Lock()
		gone := version < s.table.compacted
		var news []event
		for _, e := range s.table.log {
			if e.version > version && r.matches(e.id) {
				news = append(news, e)
			}
		}
		version = s.table.version
		s.mu.Unlock()
		if gone {
			expired := apierrors.NewResourceExpired("too old resource version").Status()
			out.write(watch.Error, &expired)
			return
		}
		for _, e := range news {
			if !out.writeEvent(selected, e) {
				return
			}
		}
		flush()
		select {
		case <-ctx.Done():
			return
		case <-me.dropped:
			return
		case <-over:
			return
		case <-me.news:
		}
	}
}

// An eventWriter writes the events of a watch.
type eventWriter struct {
	objects runtime.Encoder
	events  streaming.Encoder
}

// writeEvent writes an event as it appears to a watch with a selector.
func (w *eventWriter) writeEvent(selected selection, e event) bool {
	was, is := selected.matches(e.was), selected.matches(e.is)
	switch {
	case was && is:
		return w.write(watch.Modified, e.is)
	case is:
		return w.write(watch.Added, e.is)
	case was && e.is != nil:
		return w.write(watch.Deleted, e.is)
	case was:
		return w.write(watch.Deleted, e.was)
	}
	return true
}

func (w *eventWriter) write(t watch.EventType, o runtime.Object) bool {
	encoder := w.objects
	if _, ok := o.(*metav1.Status); ok {
		encoder = scheme.Codecs.EncoderForVersion(w.objects, metav1.SchemeGroupVersion)
	}
	data, err := runtime.Encode(encoder, o.DeepCopyObject()) // an encoder writes the kind into it
	if err != nil {
		return false
	}
	e := &metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: data}}
	return w.events.Encode(e) == nil
}

// bookmark writes the bookmark after the initial events.
func bookmark(r *request, version int64) runtime.Object {
	o, err := scheme.Scheme.New(r.gvk)
	if err != nil {
		panic(err) // checked by parse
	}
	o.(metav1.Object).SetResourceVersion(strconv.FormatInt(version, 10))
	o.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return o
}
