package server

import (
	"net/url"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// decodeLogOptions decodes a query as the API server does (rule la-1). The parameter tail is an
// old name of tailLines; its value "all" means no limit.
func decodeLogOptions(query url.Values) (opts v1.PodLogOptions, err error) {
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
	flag("follow", &opts.Follow)
	flag("previous", &opts.Previous)
	flag("timestamps", &opts.Timestamps)
	number("sinceSeconds", &opts.SinceSeconds)
	number("limitBytes", &opts.LimitBytes)
	switch tail := query.Get("tail"); tail {
	case "":
		number("tailLines", &opts.TailLines)
	case "all":
	default:
		query = url.Values{"tail": {tail}}
		number("tail", &opts.TailLines)
	}
	if values := query["sinceTime"]; err == nil && len(values) > 0 {
		opts.SinceTime = new(metav1.Time)
		if err = opts.SinceTime.UnmarshalQueryParameter(values[0]); opts.SinceTime.IsZero() {
			opts.SinceTime = nil
		}
	}
	if values := query["stream"]; len(values) > 0 {
		opts.Stream = &values[0]
	}
	return opts, err
}
