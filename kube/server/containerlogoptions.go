package server

import (
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// logOptions are what is asked of a container's log: v1.PodLogOptions.
type logOptions struct {
	follow, previous, timestamps bool
	sinceSeconds                 *int64
	sinceTime                    *metav1.Time
	tailLines, limitBytes        *int64
	stream                       logread.Stream
	noSuchStream                 bool
}

// decodeLogOptions decodes a query as API servers do (la-1). tail is an old name of
// tailLines, and "all" of it means that there is no such limit.
func decodeLogOptions(query url.Values) (q logOptions, err error) {
	number := func(name string, out **int64) {
		values := query[name]
		if err == nil {
			err = apiruntime.Convert_Slice_string_To_Pointer_int64(&values, out, nil)
		}
	}
	flag := func(name string, out *bool) {
		values := query[name]
		if err == nil {
			err = apiruntime.Convert_Slice_string_To_bool(&values, out, nil)
		}
	}
	flag("follow", &q.follow)
	flag("previous", &q.previous)
	flag("timestamps", &q.timestamps)
	number("sinceSeconds", &q.sinceSeconds)
	number("limitBytes", &q.limitBytes)
	switch tail := query.Get("tail"); tail {
	case "":
		number("tailLines", &q.tailLines)
	case "all":
	default:
		query = url.Values{"tail": {tail}}
		number("tail", &q.tailLines)
	}
	if values := query["sinceTime"]; err == nil && len(values) > 0 {
		q.sinceTime = new(metav1.Time)
		if err = q.sinceTime.UnmarshalQueryParameter(values[0]); q.sinceTime.IsZero() {
			q.sinceTime = nil
		}
	}
	if values := query["stream"]; len(values) > 0 {
		switch values[0] {
		case "All":
		case "Stdout":
			q.stream = logread.Stdout
		case "Stderr":
			q.stream = logread.Stderr
		default:
			q.noSuchStream = true
		}
	}
	return q, err
}

// valid reports whether q asks for what there can be (la-1).
func (q logOptions) valid() bool {
	switch {
	case q.tailLines != nil && *q.tailLines < 0,
		q.limitBytes != nil && *q.limitBytes < 1,
		q.sinceSeconds != nil && *q.sinceSeconds < 1,
		q.sinceSeconds != nil && q.sinceTime != nil,
		q.noSuchStream,
		q.stream != logread.All && q.tailLines != nil:
		return false
	}
	return true
}

// request is q for a reader. Of two times the later one counts (la-7).
func (q logOptions) request(now time.Time) logread.Request {
	req := logread.Request{Follow: q.follow, Timestamps: q.timestamps, Tail: q.tailLines, Limit: q.limitBytes, Stream: q.stream}
	if q.sinceSeconds != nil {
		req.Since = now.Add(-secondsOf(*q.sinceSeconds))
	}
	if q.sinceTime != nil && q.sinceTime.After(req.Since) {
		req.Since = q.sinceTime.Time
	}
	return req
}

// secondsOf is as long as there can be.
func secondsOf(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(n, most)) * time.Second
}
