package trace

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// simKubeVersion is the version of SimKube's format.
const simKubeVersion = 2

// maxSeconds bounds the length of a trace.
const maxSeconds = 1 << 30

// ReadSimKube reads a file of SimKube's tracer (.sktrace). The error names the offset or the event.
func ReadSimKube(r io.Reader) (*Trace, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("trace: file is larger than %d bytes", maxFile)
	}
	s := simKube{decoder: decoder{data: data}, trace: Trace{Lifetimes: map[Owner][]time.Duration{}}}
	s.file()
	if s.err != nil {
		return nil, fmt.Errorf("trace: %w", s.err)
	}
	return &s.trace, nil
}

// simKube reads a file of SimKube.
type simKube struct {
	decoder
	trace Trace
	first int64 // Unix time of the first event
}

func (s *simKube) file() {
	version := int64(0)
	s.fields(func(key string) {
		switch key {
		case "version":
			version = s.integer()
		case "events":
			s.array(s.event)
		case "pod_lifecycles":
			s.items(s.want(isMap, "map").size, s.lifecycles)
		default: // config and index
			s.skip()
		}
	})
	switch {
	case version != simKubeVersion:
		s.fail("version %d is not supported; %d is", version, simKubeVersion)
	case s.at < len(s.data):
		s.fail("%d more bytes", len(s.data)-s.at)
	}
}

func (s *simKube) event() {
	var e Event
	var ts int64
	s.fields(func(key string) {
		switch key {
		case "ts":
			ts = s.integer()
		case "applied_objs":
			e.Applied = s.objects()
		case "deleted_objs":
			e.Deleted = s.objects()
		default:
			s.skip()
		}
	})
	n := len(s.trace.Events)
	if n == 0 {
		s.first = ts
	}
	seconds := ts - s.first
	switch {
	case s.err != nil:
		return
	case ts < 0 || ts > math.MaxInt64/2 || seconds > maxSeconds:
		s.fail("event %d: time %d is out of range", n, ts)
		return
	}
	e.At = time.Duration(seconds) * time.Second
	if e.At < s.trace.Length() {
		s.fail("event %d: time %d is before that of the event before", n, ts)
		return
	}
	s.trace.Events = append(s.trace.Events, e)
}

func (s *simKube) objects() (out []*unstructured.Unstructured) {
	s.array(func() {
		o := &unstructured.Unstructured{Object: s.object()}
		if s.err == nil && (o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "") {
			s.fail("object %s %s %q has no apiVersion, kind or name", o.GetAPIVersion(), o.GetKind(), o.GetName())
		}
		out = append(out, o)
	})
	return out
}

// lifecycles reads the lifecycles of the pods of one owner: [kind, name]: {hash: [lifecycle]}.
func (s *simKube) lifecycles() {
	var names []string
	s.array(func() { names = append(names, s.text()) })
	if s.err == nil && len(names) != 2 {
		s.fail("owner of pods %q has not two names", names)
	}
	if s.err != nil {
		return
	}
	var o Owner
	o.APIVersion, o.Kind = cutLast(names[0], ".")
	o.Namespace, o.Name = cutLast(names[1], "/")
	s.items(s.want(isMap, "map").size, func() {
		s.skip() // the hash of the pod
		s.array(func() {
			if d, ok := s.lifecycle(); ok {
				s.trace.Lifetimes[o] = append(s.trace.Lifetimes[o], d)
			}
		})
	})
}

// cutLast cuts a text at the last separator; without one it is all behind it.
func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator)
	return text[:max(i, 0)], text[i+1:]
}

// lifecycle reads the lifecycle of a pod: "Empty", {"Running": start} or {"Finished": [start, end]}.
func (s *simKube) lifecycle() (d time.Duration, ended bool) {
	h := s.head()
	if h.kind == isString {
		s.take(h.size)
		return 0, false
	}
	if h.kind != isMap {
		s.fail("lifecycle is no map")
		return 0, false
	}
	s.items(h.size, func() {
		if s.text() != "Finished" {
			s.skip()
			return
		}
		var times []int64
		s.array(func() { times = append(times, s.integer()) })
		if s.err != nil {
			return
		}
		if len(times) != 2 || times[0] < 0 || times[1] < times[0] || times[1]-times[0] > maxSeconds {
			s.fail("lifecycle has not a start and a later end: %d", times)
			return
		}
		d, ended = time.Duration(times[1]-times[0])*time.Second, true
	})
	return d, ended
}
