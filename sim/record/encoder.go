package record

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// An encoder makes the frames of notifications: it masks secrets, and omits what the file already
// contains. It belongs to the goroutine that writes.
type encoder struct {
	redact  *redactor
	sources map[string]map[types.UID]*v1.Pod // the last sets
	slots   slots
}

func newEncoder() *encoder {
	return &encoder{redact: newRedactor(), sources: map[string]map[types.UID]*v1.Pod{}}
}

// newFile returns the frames at the start of a file, which does not refer to earlier files.
func (e *encoder) newFile() []Frame {
	e.slots = slots{}
	var frames []Frame
	for _, source := range slices.Sorted(maps.Keys(e.sources)) {
		f := Frame{Pods: &Pods{Source: source, Complete: true}}
		for _, uid := range slices.Sorted(maps.Keys(e.sources[source])) {
			f.Pods.Changed = append(f.Pods.Changed, e.redact.pod(e.sources[source][uid]))
		}
		frames = append(frames, f)
	}
	return frames
}

// pods returns the difference of a set from the last one of the source.
func (e *encoder) pods(source string, set []*v1.Pod) Frame {
	last, next, p := e.sources[source], make(map[types.UID]*v1.Pod, len(set)), &Pods{Source: source}
	for _, pod := range set {
		next[pod.UID] = pod
		if was := last[pod.UID]; was == nil || was != pod && !reflect.DeepEqual(was, pod) {
			p.Changed = append(p.Changed, e.redact.pod(pod))
		}
	}
	for uid := range last {
		if next[uid] == nil {
			p.Removed = append(p.Removed, uid)
		}
	}
	slices.Sort(p.Removed)
	e.sources[source] = next
	return Frame{Pods: p}
}

// call returns the frame of a call. request and answer are messages in wire form, of the types of
// the empty messages.
func (e *encoder) call(c Call, request, answer wire, err *Error) Frame {
	read := readOnly[c.Method] && err == nil && !c.Pending
	if read {
		if c.Same = e.slots.find(c.Method, request, answer); c.Same != 0 {
			return Frame{Call: &c}
		}
	}
	c.Request, c.Answer = e.message(request), e.message(answer)
	if err != nil {
		err.Message = e.redact.texts.scrub(err.Message)
		c.Error = err
	}
	if read {
		c.Slot = e.slots.put(c.Method, request, answer, c.size())
	}
	return Frame{Call: &c}
}

// A wire is a message in wire form, of the type of empty. A nil empty is no message.
type wire struct {
	empty proto.Message
	data  []byte
}

// message returns the JSON form of a message, with masked secrets.
func (e *encoder) message(w wire) json.RawMessage {
	if w.empty == nil {
		return nil
	}
	m := w.empty.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(w.data, m); err != nil {
		return nil // cannot happen: the recorder has encoded it
	}
	e.redact.redactMessage(m)
	text, err := protojson.Marshal(m)
	if err != nil { // invalid UTF-8
		return nil
	}
	return text
}

// readOnly are the methods whose answers are kept in slots: those that the agent calls
// periodically.
var readOnly = map[string]bool{
	"Version": true, "Status": true, "RuntimeConfig": true, "ListContainers": true, "ListPodSandbox": true, "ListImages": true,
	"ContainerStatus": true, "PodSandboxStatus": true, "ImageStatus": true, "ImageFsInfo": true,
	"ContainerStats": true, "ListContainerStats": true, "PodSandboxStats": true, "ListPodSandboxStats": true,
}

// A digest identifies a message.
type digest = [sha256.Size]byte

// slots are the calls of a file that later frames may refer to. The zero value is empty.
type slots struct {
	byRequest map[digest]int
	used      []slot // slot n is used[n-1]
	next      int    // the slot to replace if all are used, from 0
	size      int
}

type slot struct {
	request, answer digest
	size            int
}

// find returns the slot with the same request and answer; zero if there is none.
func (s *slots) find(method string, request, answer wire) int {
	n := s.byRequest[requestOf(method, request)]
	if n == 0 || s.used[n-1].answer != sha256.Sum256(answer.data) {
		return 0
	}
	return n
}

// put returns the slot to keep a call in; zero if it is too large. It is the slot with the same
// request, if there is one.
func (s *slots) put(method string, request, answer wire, size int) int {
	const share = 16 // a call occupies at most this part of all slots
	key := requestOf(method, request)
	n := s.byRequest[key]
	if n == 0 && len(s.used) < maxSlots {
		s.used = append(s.used, slot{})
		n = len(s.used)
	} else if n == 0 {
		n = s.next + 1
		s.next = (s.next + 1) % maxSlots
		delete(s.byRequest, s.used[n-1].request)
	}
	if size > maxKept/share || s.size-s.used[n-1].size+size > maxKept {
		return 0 // the slot is unchanged, or unused
	}
	s.size += size - s.used[n-1].size
	s.used[n-1] = slot{key, sha256.Sum256(answer.data), size}
	if s.byRequest == nil {
		s.byRequest = map[digest]int{}
	}
	s.byRequest[key] = n
	return n
}

func requestOf(method string, request wire) digest {
	h := sha256.New()
	h.Write([]byte(method))
	h.Write([]byte{0})
	h.Write(request.data)
	return digest(h.Sum(nil))
}
