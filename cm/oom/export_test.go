package oom

var Record = parseRecord
