package serve

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// statusOf gives an error that says it is about something unsupported the code
// that clients of the CRI know for it. Package grpc does the rest: a status that
// is wrapped keeps its code, the errors of contexts have theirs, and what has
// none gets Unknown.
func statusOf(err error) error {
	if isUnsupported(err) && status.Code(err) != codes.Unimplemented {
		return status.Error(codes.Unimplemented, err.Error())
	}
	return err
}

// isUnsupported tells a refusal of something as such from a failure.
func isUnsupported(err error) bool {
	if err == nil {
		return false
	}
	if s, ok := status.FromError(err); ok {
		return s.Code() == codes.Unimplemented
	}
	return errors.Is(err, errors.ErrUnsupported)
}

func (s *Server) called(method string, begin time.Time, err error) {
	if s.cfg.Called != nil {
		s.cfg.Called(CallInfo{Method: method[strings.LastIndexByte(method, '/')+1:], Duration: time.Since(begin), Err: err})
	}
}
