package apiserver

import "k8s.io/apimachinery/pkg/util/runtime"

// init removes the rate limit of logged errors, which the libraries share between all tests of a
// process: it compares the current time with that of the last error. Virtual time begins in
// 2000, so that the first error in a synctest bubble, such as that of a plugin which is stopped
// before its informers have synchronized, would sleep for decades. Package kube/controllers
// does the same.
func init() { runtime.ErrorHandlers = runtime.ErrorHandlers[:1] }
