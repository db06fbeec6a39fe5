package server

import (
	"net/http"
	"strings"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// What each method of a request is called in the roles of the API server (sv-14).
// HEAD is a GET whose answer nobody reads. A method that is not here has no verb, and
// is answered 405.
var reads = map[string]string{
	http.MethodGet:    "get",
	http.MethodHead:   "get",
	http.MethodPost:   "create",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// acts are the verbs of what runs something in a pod, whichever method asks for it: a
// WebSocket is opened by a GET, which must not be had by who may only read (sv-19,
// F-71).
var acts = map[string]string{
	http.MethodGet:  "create",
	http.MethodPost: "create",
}

// An area is what the paths below one first segment have in common: which verbs they
// are authorised as, and which subresources of the node, any of which will do.
type area struct {
	verbs        map[string]string
	subresources []string // the narrow one first (sv-16)
	debugging    bool     // it goes away without enableDebuggingHandlers (sv-6)
}

// areas by first segment (sv-15, sv-16, sv-18). All others are elsewhere.
var areas = map[string]area{
	"stats":      {verbs: reads, subresources: []string{"stats"}},
	"metrics":    {verbs: reads, subresources: []string{"metrics"}},
	"checkpoint": {verbs: reads, subresources: []string{"checkpoint"}},
	"pods":       {verbs: reads, subresources: []string{"pods", "proxy"}},
	"healthz":    {verbs: reads, subresources: []string{"healthz", "proxy"}},
	"configz":    {verbs: reads, subresources: []string{"configz", "proxy"}},

	"logs":          {verbs: reads, subresources: []string{"log"}, debugging: true},
	"runningpods":   {verbs: reads, subresources: []string{"pods", "proxy"}, debugging: true},
	"containerLogs": {verbs: reads, subresources: []string{"proxy"}, debugging: true},
	"debug":         {verbs: reads, subresources: []string{"proxy"}, debugging: true},
	"exec":          {verbs: acts, subresources: []string{"proxy"}, debugging: true},
	"attach":        {verbs: acts, subresources: []string{"proxy"}, debugging: true},
	"portForward":   {verbs: acts, subresources: []string{"proxy"}, debugging: true},
	"run":           {verbs: acts, subresources: []string{"proxy"}, debugging: true},
}

// elsewhere is where nothing is said of.
var elsewhere = area{verbs: reads, subresources: []string{"proxy"}}

func areaOf(path string) area {
	if a, ok := areas[firstSegment(path)]; ok {
		return a
	}
	return elsewhere
}

// firstSegment of a path; whole segments only, so that /statsx is not /stats (sv-18).
func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// Attributes returns what a request to a node's API is authorised as: who may do any
// of these may make it. None: there is no such request, whoever makes it.
//
// It is a function of the method and the path alone, so that no header can make
// another request of it.
func Attributes(nodeName string, r *http.Request) []auth.Attributes {
	a := areaOf(r.URL.Path)
	verb := a.verbs[r.Method]
	if verb == "" {
		return nil
	}
	var any []auth.Attributes
	for _, sub := range a.subresources {
		any = append(any, auth.Attributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: sub, Name: nodeName})
	}
	return any
}
