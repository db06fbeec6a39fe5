package serve

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// statusOf returns an error of something unsupported with the code Unimplemented.
// Other errors are converted by package grpc: a wrapped status keeps its code, errors
// of contexts have theirs, and others get Unknown.
func statusOf(err error) error {
	if isUnsupported(err) && status.Code(err) != codes.Unimplemented {
		return status.Error(codes.Unimplemented, err.Error())
	}
	return err
}

// isUnsupported reports whether err is Unimplemented or errors.ErrUnsupported.
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
