package apitest

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// A format is the form of a response.
type format struct {
	protobuf                bool
	as                      string // "", Table, TableList, PartialObjectMetadata, PartialObjectMetadataList
	schema.GroupVersionKind        // in which objects are encoded
}

func (f format) mime() string {
	if f.protobuf {
		return protobufType
	}
	return runtime.ContentTypeJSON
}

// negotiate returns the first form in the header Accept that the server can produce.
func negotiate(accept string, gvk schema.GroupVersionKind, typed bool) (format, error) {
	f := format{GroupVersionKind: gvk}
	if accept == "" {
		return f, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(clause)
		if err != nil || params["q"] == "0" {
			continue
		}
		switch kind {
		case "application/json", "*/*", "application/*":
		case protobufType:
			if !typed {
				continue
			}
			f.protobuf = true
		default:
			continue
		}
		switch as := params["as"]; as {
		case "":
		case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
			if params["g"] != metav1.GroupName || params["v"] != "v1" || as == "Table" && f.protobuf {
				f.protobuf = false
				continue
			}
			f.as = as
		default:
			f.protobuf = false
			continue
		}
		return f, nil
	}
	return f, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json, " + protobufType,
	}}
}

// An encoding caches the encoded forms of one object, which does not change.
type encoding struct {
	mu    sync.Mutex
	forms []form // few: a map would take more memory than the data
}

// A form is an encoded form of an object.
type form struct {
	format format
	data   []byte
}

func (e *encoding) get(f format, encode func() ([]byte, error)) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.forms {
		if e.forms[i].format == f {
			return e.forms[i].data, nil
		}
	}
	data, err := encode()
	if err != nil {
		return nil, err
	}
	e.forms = append(e.forms, form{f, data})
	return data, nil
}

// drop forgets the forms, unless one is being made.
func (e *encoding) drop() {
	if e.mu.TryLock() {
		e.forms = nil
		e.mu.Unlock()
	}
}

// largeForms is the size of encoded forms, in bytes, that are forgotten as soon as the object is replaced.
const largeForms = 32 << 10

// replaced forgets large forms of an object that is no longer stored.
func (e *encoding) replaced() {
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	size := 0
	for i := range e.forms {
		size += len(e.forms[i].data)
	}
	if size > largeForms {
		e.forms = nil
	}
}

// encoded returns an item in a form.
func (s *Server) encoded(i *item, f format) ([]byte, error) {
	return i.encoding.get(f, func() ([]byte, error) {
		o, err := s.presented(i.kind, i.object, f)
		if err != nil {
			return nil, err
		}
		return encode(o, f.protobuf)
	})
}

// listed returns an item as it is in a list: those with Go types have no kind there.
func (s *Server) listed(i *item, f format) ([]byte, error) {
	if i.kind.scheme == nil {
		return s.encoded(i, f)
	}
	in := f
	in.as = "item"
	return i.encoding.get(in, func() ([]byte, error) {
		o, err := i.kind.convert(i.object, f.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		return encode(untyped(o), false)
	})
}

// untyped returns a copy of an object without its kind.
func untyped(o object) object {
	out := shallow(o)
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return out
}

// presented returns an object as the form presents it.
func (s *Server) presented(k *kind, o object, f format) (runtime.Object, error) {
	switch f.as {
	case "Table":
		return s.tabulate(k, []object{o}, o, f.GroupVersionKind)
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return partial(o), nil
	}
	return k.convert(o, f.GroupVersionKind)
}

// encode encodes an object that has its kind set.
func encode(o runtime.Object, asProtobuf bool) ([]byte, error) {
	if !asProtobuf {
		return json.Marshal(o)
	}
	scratch := runtime.AllocatorPool.Get().(*runtime.Allocator)
	defer runtime.AllocatorPool.Put(scratch)
	var buf bytes.Buffer
	err := protobuf.NewSerializer(nil, nil).EncodeWithAllocator(o, &buf, scratch)
	return buf.Bytes(), err
}

// write writes an encoded object.
func write(w http.ResponseWriter, f format, code int, data []byte) {
	w.Header().Set("Content-Type", f.mime())
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// writeError writes a Status, as JSON, which every client supports.
func writeError(w http.ResponseWriter, err error) {
	if err == errNotServed {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	data, err := json.Marshal(&status)
	if err != nil {
		panic(err) // a Status can be written
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(data)
}
