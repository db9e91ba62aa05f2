package parse

// noLanguage are types whose texts are written for machines.
var noLanguage = map[string]bool{TypeSource: true, TypeJSON: true, TypeJSONLines: true, TypeCSV: true, TypeTSV: true, TypeXML: true}
