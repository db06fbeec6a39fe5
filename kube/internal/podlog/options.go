package podlog

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// Valid reports whether opts can be satisfied (rule la-1).
func Valid(opts *v1.PodLogOptions) bool {
	switch {
	case opts.TailLines != nil && *opts.TailLines < 0,
		opts.LimitBytes != nil && *opts.LimitBytes < 1,
		opts.SinceSeconds != nil && *opts.SinceSeconds < 1,
		opts.SinceSeconds != nil && opts.SinceTime != nil:
		return false
	}
	stream, ok := streams[streamOf(opts)]
	return ok && (stream == logread.All || opts.TailLines == nil)
}

var streams = map[string]logread.Stream{
	v1.LogStreamAll: logread.All, v1.LogStreamStdout: logread.Stdout, v1.LogStreamStderr: logread.Stderr,
}

func streamOf(opts *v1.PodLogOptions) string {
	if opts.Stream == nil {
		return v1.LogStreamAll
	}
	return *opts.Stream
}

// Request returns opts as a request for a log reader. Path, Running and Gap are left to
// the caller. If both SinceSeconds and SinceTime are set, the later time is used (rule la-7).
func Request(opts *v1.PodLogOptions, now time.Time) logread.Request {
	req := logread.Request{
		Follow: opts.Follow, Timestamps: opts.Timestamps, Tail: opts.TailLines, Limit: opts.LimitBytes,
		Stream: streams[streamOf(opts)],
	}
	if opts.SinceSeconds != nil {
		req.Since = now.Add(-seconds(*opts.SinceSeconds))
	}
	if opts.SinceTime != nil && opts.SinceTime.After(req.Since) {
		req.Since = opts.SinceTime.Time
	}
	return req
}

// seconds returns n seconds, at most the longest duration.
func seconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(n, most)) * time.Second
}
